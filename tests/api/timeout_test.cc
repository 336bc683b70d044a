// SPDX-License-Identifier: Apache-2.0
//
// ccomCommSetTimeout: which calls it holds for. Ranks are threads; a rank that is late makes the others wait.
#include <chrono>
#include <string>

#include "tests/harness/world.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

TEST(SetTimeout, RefusesWhatIsNoTimeAndWhatIsNoCommunicator) {
  with_ranks(1, [](int, ccomComm_t comm) {
    EXPECT_EQ(ccomCommSetTimeout(nullptr, 1000), ccomInvalidArgument);
    EXPECT_EQ(ccomCommSetTimeout(comm, 0), ccomInvalidArgument);
    EXPECT_EQ(ccomCommSetTimeout(comm, -1), ccomInvalidArgument);
    EXPECT_STREQ(ccomGetLastError(nullptr), "ccomCommSetTimeout: timeoutMs is -1; it must be positive [CCOM-E003]");
    EXPECT_EQ(ccomCommSetTimeout(comm, INT64_MAX), ccomSuccess);
    EXPECT_EQ(ccomBarrier(comm, nullptr), ccomSuccess);
  });
}

// On the node's memory and over transports.
TEST(SetTimeout, ShortensTheCallsThatFollow) {
  for (const char* transport : {static_cast<const char*>(nullptr), "tcp"}) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.transport = transport;
    with_ranks(2, &config, [](int rank, ccomComm_t comm) {
      ASSERT_EQ(ccomBarrier(comm, nullptr), ccomSuccess);
      if (rank == 1) return;  // never calls again
      ASSERT_EQ(ccomCommSetTimeout(comm, 100), ccomSuccess);
      const auto start = steady_clock::now();
      EXPECT_EQ(ccomBarrier(comm, nullptr), ccomTimeout);
      EXPECT_GE(steady_clock::now() - start, milliseconds(90));
      EXPECT_LT(steady_clock::now() - start, milliseconds(20000)) << "the default is five minutes";
    });
  }
}

TEST(SetTimeout, LengthensTheCallsThatFollow) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = 1;
  with_ranks(2, &config, [](int rank, ccomComm_t comm) {
    ASSERT_EQ(ccomCommSetTimeout(comm, 60000), ccomSuccess);
    if (rank == 1) std::this_thread::sleep_for(milliseconds(100));  // longer than the timeout of 1 ms
    EXPECT_EQ(ccomBarrier(comm, nullptr), ccomSuccess) << ccomGetLastError(nullptr);
  });
}

TEST(SetTimeout, OfAQueuedCallIsWhatWasSetWhenItWasMade) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    ccomStream_t stream = nullptr;
    ASSERT_EQ(ccomStreamCreate(&stream), ccomSuccess);
    ASSERT_EQ(ccomCommSetTimeout(comm, 60000), ccomSuccess);
    if (rank == 1) std::this_thread::sleep_for(milliseconds(100));  // longer than the timeout of 1 ms
    ASSERT_EQ(ccomBarrier(comm, stream), ccomSuccess);
    ASSERT_EQ(ccomCommSetTimeout(comm, 1), ccomSuccess);
    EXPECT_EQ(ccomStreamSynchronize(stream, -1), ccomSuccess) << ccomGetLastError(nullptr);
    EXPECT_EQ(ccomStreamDestroy(stream), ccomSuccess);
  });
}

TEST(SetTimeout, HoldsForTransfersToo) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    if (rank == 1) return;
    ASSERT_EQ(ccomCommSetTimeout(comm, 100), ccomSuccess);
    int x = 0;
    EXPECT_EQ(ccomRecv(&x, 1, ccomInt32, 1, comm, nullptr), ccomTimeout);
  });
}

TEST(SetTimeout, MayBeCalledWhileOthersCall) {
  with_ranks(2, [](int, ccomComm_t comm) {
    std::thread setter([comm] {
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(ccomCommSetTimeout(comm, 30000 + i), ccomSuccess);
    });
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(ccomBarrier(comm, nullptr), ccomSuccess);
    setter.join();
  });
}

}  // namespace
}  // namespace ccom
