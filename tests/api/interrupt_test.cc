// SPDX-License-Identifier: Apache-2.0
//
// ccomConfig_t.interrupted: who waits can stop waiting, at the start and in calls. Ranks are threads.
#include <atomic>
#include <chrono>

#include "tests/harness/world.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Asked by both ranks of a process; true from the moment at which it was asked for.
struct Wish {
  std::atomic<bool> is_wanted{false};
  std::atomic<int> asked{0};
  ccomConfig_t config(const char* transport = nullptr) {
    ccomConfig_t made = CCOM_CONFIG_INIT;
    made.transport = transport;
    made.interrupted = [](void* user) {
      auto* self = static_cast<Wish*>(user);
      ++self->asked;
      return self->is_wanted.load() ? 1 : 0;
    };
    made.interruptedUser = this;
    return made;
  }
};

TEST(Interrupted, EndsACallOnAllRanks) {
  for (const char* transport : {static_cast<const char*>(nullptr), "shm", "tcp"}) {
    Wish wish;
    const ccomConfig_t config = wish.config(transport);
    with_ranks(2, &config, [&wish](int rank, ccomComm_t comm) {
      ASSERT_OK(ccomBarrier(comm, nullptr));
      if (rank == 1) {  // does not come until rank 0 has been interrupted
        std::this_thread::sleep_for(milliseconds(100));
        const auto start = steady_clock::now();
        wish.is_wanted = true;
        for (ccomResult_t seen = ccomSuccess; seen == ccomSuccess; std::this_thread::yield())
          ASSERT_OK(ccomCommGetAsyncError(comm, &seen));
        EXPECT_LT(steady_clock::now() - start, milliseconds(5000)) << "it is asked every few milliseconds";
      }
      EXPECT_ERROR(ccomBarrier(comm, nullptr), ccomAborted, "was interrupted while it waited");
    });
    EXPECT_GT(wish.asked, 0);
  }
}

// A Ctrl-C in Python did nothing until the group's time was up, where the others did not come to shrink it.
TEST(Interrupted, EndsAnAgreement) {
  Wish wish;
  const ccomConfig_t config = wish.config();
  std::atomic<bool> is_over{false};
  with_ranks(2, &config, [&](int rank, ccomComm_t comm) {
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(100));  // rank 0 waits by now
      wish.is_wanted = true;
      while (!is_over) std::this_thread::yield();  // it never comes
      return;
    }
    int flags = 1;
    EXPECT_ERROR(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomAborted,
                 "was interrupted while it waited for rank 1");
    is_over = true;
  });
}

TEST(Interrupted, EndsAStart) {
  const ccomUniqueId id = new_id();
  Wish wish;
  const ccomConfig_t config = wish.config();
  std::thread later([&wish] {
    std::this_thread::sleep_for(milliseconds(300));  // rank 0 waits by now
    wish.is_wanted = true;
  });
  ccomComm_t comm = nullptr;
  const auto start = steady_clock::now();
  EXPECT_EQ(ccomCommInitRankConfig(&comm, 2, id, 0, &config), ccomAborted) << "rank 1 never comes";
  EXPECT_LT(steady_clock::now() - start, milliseconds(20000)) << "the default is a minute";
  EXPECT_EQ(comm, nullptr);
  later.join();
}

// Seldom: not before 200 us, then after slices of 100 us to 5 ms.
TEST(Interrupted, IsAskedOftenWhereThatIsWanted) {
  for (const char* transport : {static_cast<const char*>(nullptr), "tcp"}) {
    int asked[2];
    for (int often : {0, 1}) {
      Wish wish;
      ccomConfig_t config = wish.config(transport);
      config.interruptedOften = often;
      with_ranks(2, &config, [&](int rank, ccomComm_t comm) {
        ASSERT_OK(ccomBarrier(comm, nullptr));
        const int before = wish.asked;
        if (rank == 1) std::this_thread::sleep_for(milliseconds(300));  // time to be asked in
        ASSERT_OK(ccomBarrier(comm, nullptr));
        if (rank == 0) asked[often] = wish.asked - before;
      });
    }
    EXPECT_GT(asked[0], 0);
    EXPECT_GT(asked[1], 4 * asked[0]);
  }
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.interruptedOften = 2;
  ccomComm_t comms[1] = {nullptr};
  EXPECT_EQ(ccomCommInitAll(comms, 1, &config), ccomInvalidArgument);
}

TEST(Interrupted, IsNotAskedByCallsThatDoNotWait) {
  Wish wish;
  const ccomConfig_t config = wish.config();
  with_ranks(1, &config, [&wish](int, ccomComm_t comm) {
    wish.is_wanted = true;
    const int asked = wish.asked;  // at the start
    for (int i = 0; i < 100; ++i) EXPECT_OK(ccomBarrier(comm, nullptr));
    EXPECT_OK(async_error(comm));
    EXPECT_EQ(wish.asked, asked);
  });
}

}  // namespace
}  // namespace ccom
