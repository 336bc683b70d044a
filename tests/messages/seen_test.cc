// SPDX-License-Identifier: Apache-2.0
//
// What errors and counters say of messages.
#include <chrono>

#include "tests/harness/waiting.h"
#include "tests/messages/ranks.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using testing::ContainsRegex;

TEST(MessagesSeen, ATimeoutSaysWhoWaitsForWhichMessageAndWhere) {
  for (const Way& way : {kShm, kTcp, kMixed}) {
    with_message_ranks(4, {.way = way, .timeout_ms = 1000}, [](int rank, ccomComm_t comm) {
      int x = 0;
      ccomMessage_t message = nullptr;
      if (rank == 3) {  // has no part in it
        ccomResult_t state = ccomSuccess;
        wait_until([&] { return ccomCommGetAsyncError(comm, &state) != ccomSuccess || state != ccomSuccess; });
        EXPECT_EQ(state, ccomTimeout);
      } else {
        message = receive(&x, sizeof x, 3, 40 + rank, comm);
        EXPECT_EQ(ccomMessageWait(message, -1, nullptr), ccomTimeout);
        EXPECT_THAT(error_text(), ContainsRegex("rank 3.* is not in a call"));
        for (const int each : {0, 1, 2}) {
          const std::string name = std::to_string(each);
          EXPECT_THAT(error_text(),
                      ContainsRegex("rank " + name + " (.host [a-z0-9]+. )?is at [^;]* in receive from rank " +
                                    "3 .tag 4" + name + ", 4 bytes., for [0-9.]+ s now"));
        }
      }
      EXPECT_OK(ccomMessageFree(message));
      ccomCommAbort(comm);
    });
  }
}

TEST(MessagesSeen, TheReportNamesWhoMadeOthersWaitInMessages) {
  with_message_ranks(2, {}, [](int rank, ccomComm_t comm) {
    std::vector<std::byte> data(100000);
    if (rank == 1) std::this_thread::sleep_for(milliseconds(500));
    finish(rank == 1 ? send(data.data(), data.size(), 0, 7, comm) : receive(data.data(), data.size(), 1, 7, comm));
    std::string text(16384, '\0');
    size_t length = text.size();
    EXPECT_OK(ccomCommReport(comm, 0, text.data(), &length));
    EXPECT_THAT(text, ContainsRegex("rank 1 made the others wait [0-9]+ % of the time.*before sendrecv"));
  });
}

}  // namespace
}  // namespace ccom
