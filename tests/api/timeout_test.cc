// SPDX-License-Identifier: Apache-2.0
//
// ccomCommSetTimeout: which calls it holds for. Ranks are threads; a rank that is late makes the others wait.
#include <chrono>

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
    EXPECT_OK(ccomCommSetTimeout(comm, INT64_MAX));
    EXPECT_OK(ccomBarrier(comm, nullptr));
  });
}

// On the node's memory and over transports.
TEST(SetTimeout, ShortensTheCallsThatFollow) {
  for (const char* transport : {static_cast<const char*>(nullptr), "tcp"}) {
    with_ranks({.hosts = std::vector<int>(2), .transport = transport}, [](int rank, ccomComm_t comm) {
      ASSERT_OK(ccomBarrier(comm, nullptr));
      if (rank == 1) return;  // never calls again
      ASSERT_OK(ccomCommSetTimeout(comm, 100));
      const auto start = steady_clock::now();
      EXPECT_EQ(ccomBarrier(comm, nullptr), ccomTimeout);
      EXPECT_GE(steady_clock::now() - start, milliseconds(90));
      EXPECT_LT(steady_clock::now() - start, milliseconds(20000)) << "the default is five minutes";
    });
  }
}

TEST(SetTimeout, LengthensTheCallsThatFollow) {
  with_ranks({.hosts = std::vector<int>(2), .timeout_ms = 1}, [](int rank, ccomComm_t comm) {
    ASSERT_OK(ccomCommSetTimeout(comm, 60000));
    if (rank == 1) std::this_thread::sleep_for(milliseconds(100));  // longer than the timeout of 1 ms
    EXPECT_OK(ccomBarrier(comm, nullptr));
  });
}

TEST(SetTimeout, OfAQueuedCallIsWhatWasSetWhenItWasMade) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    const ccomStream_t stream = new_stream();
    ASSERT_OK(ccomCommSetTimeout(comm, 60000));
    if (rank == 1) std::this_thread::sleep_for(milliseconds(100));  // longer than the timeout of 1 ms
    ASSERT_OK(ccomBarrier(comm, stream));
    ASSERT_OK(ccomCommSetTimeout(comm, 1));
    EXPECT_OK(ccomStreamSynchronize(stream, -1));
    EXPECT_OK(ccomStreamDestroy(stream));
  });
}

TEST(SetTimeout, HoldsForTransfersToo) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    if (rank == 1) return;
    ASSERT_OK(ccomCommSetTimeout(comm, 100));
    int x = 0;
    EXPECT_EQ(ccomRecv(&x, 1, ccomInt32, 1, comm, nullptr), ccomTimeout);
  });
}

TEST(SetTimeout, MayBeCalledWhileOthersCall) {
  with_ranks(2, [](int, ccomComm_t comm) {
    std::thread setter([comm] {
      for (int i = 0; i < 1000; ++i) EXPECT_OK(ccomCommSetTimeout(comm, 30000 + i));
    });
    for (int i = 0; i < 1000; ++i) EXPECT_OK(ccomBarrier(comm, nullptr));
    setter.join();
  });
}

}  // namespace
}  // namespace ccom
