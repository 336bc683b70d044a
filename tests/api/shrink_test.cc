// SPDX-License-Identifier: Apache-2.0
//
// ccomCommRevoke, ccomCommAgree and ccomCommShrink, ranks as threads: who is left, before an error and after one, and
// what is refused. Deaths: tests/processes/survivors_test.cc.
#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/folder.h"
#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

ccomResult_t async_error(ccomComm_t comm) {
  ccomResult_t result = ccomSuccess;
  EXPECT_EQ(ccomCommGetAsyncError(comm, &result), ccomSuccess);
  return result;
}

std::vector<int> gathered(ccomComm_t comm, int rank) {
  int count = 0;
  EXPECT_EQ(ccomCommCount(comm, &count), ccomSuccess);
  std::vector<int> all(static_cast<size_t>(count), -1);
  EXPECT_EQ(ccomAllGather(&rank, all.data(), 1, ccomInt32, comm, nullptr), ccomSuccess) << ccomGetLastError(comm);
  return all;
}

ccomComm_t shrink(ccomComm_t comm, std::vector<int> excluded = {}, int flags = CCOM_SHRINK_DEFAULT) {
  ccomComm_t smaller = nullptr;
  EXPECT_EQ(ccomCommShrink(comm, excluded.empty() ? nullptr : excluded.data(), static_cast<int>(excluded.size()),
                           &smaller, nullptr, flags),
            ccomSuccess)
      << ccomGetLastError(nullptr);
  return smaller;
}

void check_and_destroy(ccomComm_t comm, int rank, const std::vector<int>& members) {
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(gathered(comm, rank), members);
  EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
}

std::vector<int> parent_ranks(ccomComm_t comm) {
  int count = 0;
  EXPECT_EQ(ccomCommCount(comm, &count), ccomSuccess);
  std::vector<int> ranks(static_cast<size_t>(count), -2);
  EXPECT_EQ(ccomCommGetParentRanks(comm, ranks.data()), ccomSuccess) << ccomGetLastError(nullptr);
  return ranks;
}

// By the number of hosts.
class Shrink : public testing::TestWithParam<int> {
 protected:
  static void with_ranks(int nranks, const RankBody& run) {
    ccom::with_ranks({.hosts = hosts_in_turn(nranks, GetParam())}, run);
  }
};
INSTANTIATE_TEST_SUITE_P(Hosts, Shrink, testing::Values(1, 2), testing::PrintToStringParamName());

TEST_P(Shrink, LeavesOutTheRanksThatAreNamed) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    if (rank != 2) check_and_destroy(shrink(comm, {2}), rank, {0, 1, 3});
    EXPECT_EQ(gathered(comm, rank), (std::vector<int>{0, 1, 2, 3})) << "the whole stays as it was";
  });
}

TEST_P(Shrink, SaysWhoIsLeft) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    EXPECT_EQ(parent_ranks(comm), (std::vector<int>{-1, -1, -1, -1}));
    EXPECT_EQ(ccomCommGetParentRanks(comm, nullptr), ccomInvalidArgument);
    if (rank == 1) return;
    const ccomComm_t smaller = shrink(comm, {1});
    ASSERT_NE(smaller, nullptr);
    EXPECT_EQ(parent_ranks(smaller), (std::vector<int>{0, 2, 3}));
    if (rank != 0) {
      const ccomComm_t again = shrink(smaller, {0});
      EXPECT_EQ(parent_ranks(again), (std::vector<int>{1, 2}));
      EXPECT_EQ(ccomCommDestroy(again), ccomSuccess);
    }
    EXPECT_EQ(ccomCommDestroy(smaller), ccomSuccess);
  });
}

TEST_P(Shrink, OfAllRanksMakesOneThatIsAlike) {
  with_ranks(3, [](int rank, ccomComm_t comm) { check_and_destroy(shrink(comm), rank, {0, 1, 2}); });
}

TEST_P(Shrink, WorksAfterAnErrorAndAgain) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    if (rank == 1) {
      EXPECT_EQ(ccomCommAbort(comm), ccomSuccess);
    }
    float one = 1;
    ccomResult_t result = ccomSuccess;
    while (result == ccomSuccess) result = ccomAllReduce(&one, &one, 1, ccomFloat32, ccomSum, comm, nullptr);
    EXPECT_EQ(result, ccomAborted);
    check_and_destroy(shrink(comm), rank, {0, 1, 2, 3});
    if (rank == 0) return;
    check_and_destroy(shrink(comm, {0}), rank, {1, 2, 3});
    EXPECT_EQ(async_error(comm), ccomAborted) << "the error of the whole stays";
  });
}

TEST_P(Shrink, LeavesOutRanksThatHaveLeft) {
  std::latch has_left(1);
  with_ranks(4, [&](int rank, ccomComm_t& comm) {
    if (rank == 1) {
      EXPECT_EQ(ccomCommDestroy(std::exchange(comm, nullptr)), ccomSuccess);
      has_left.count_down();
      return;
    }
    has_left.wait();
    int flags = rank == 2 ? 6 : 7, lost[3] = {-1, -1, -1}, count = -1;
    EXPECT_EQ(ccomCommAgree(comm, &flags, lost, &count), ccomSuccess) << ccomGetLastError(nullptr);
    EXPECT_EQ(flags, 6);
    EXPECT_EQ(count, 1);
    EXPECT_EQ(lost[0], 1);
    check_and_destroy(shrink(comm), rank, {0, 2, 3});
  });
}

TEST_P(Shrink, RevokeEndsTheOperationsOfAllRanks) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    if (rank == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the others wait by now
      EXPECT_EQ(ccomCommRevoke(comm, 0), ccomSuccess);
    } else {
      EXPECT_EQ(ccomBarrier(comm, nullptr), ccomRevoked);
      EXPECT_NE(std::strstr(ccomGetLastError(nullptr), "rank 0 revoked"), nullptr) << ccomGetLastError(nullptr);
    }
    EXPECT_EQ(ccomBarrier(comm, nullptr), ccomRevoked);
    int flags = -1;
    EXPECT_EQ(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomSuccess) << ccomGetLastError(nullptr);
    EXPECT_EQ(flags, -1);
    check_and_destroy(shrink(comm), rank, {0, 1, 2});
  });
}

TEST_P(Shrink, WithAbortGetsTheOthersOutOfTheirOperations) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    if (rank != 1) {
      EXPECT_EQ(ccomBarrier(comm, nullptr), ccomRevoked);
    }
    check_and_destroy(shrink(comm, {}, rank == 1 ? CCOM_SHRINK_ABORT : CCOM_SHRINK_DEFAULT), rank, {0, 1, 2});
  });
}

TEST_P(Shrink, AgreeNamesARankThatDoesNotCome) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    EXPECT_EQ(ccomCommSetTimeout(comm, 300), ccomSuccess);
    int flags = 1;
    if (rank != 2) {
      EXPECT_EQ(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomTimeout);
      EXPECT_NE(std::strstr(ccomGetLastError(nullptr), "rank 2 "), nullptr) << ccomGetLastError(nullptr);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));  // three times what the others wait
      EXPECT_EQ(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomTimeout) << "it is too late, as all have heard";
    }
    EXPECT_EQ(async_error(comm), ccomSuccess) << "no error of the communicator";
    EXPECT_EQ(ccomCommSetTimeout(comm, 60000), ccomSuccess);
    EXPECT_EQ(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomSuccess) << ccomGetLastError(nullptr);
  });
}

TEST_P(Shrink, AgreeWithOtherArgumentsIsAMismatch) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    int flags = 1;
    ccomComm_t smaller = nullptr;
    const ccomResult_t result = rank == 1 ? ccomCommShrink(comm, nullptr, 0, &smaller, nullptr, 0)
                                          : ccomCommAgree(comm, &flags, nullptr, nullptr);
    EXPECT_EQ(result, ccomMismatch);
    EXPECT_NE(std::strstr(ccomGetLastError(nullptr), "rank 1 makes another call"), nullptr)
        << ccomGetLastError(nullptr);
  });
}

TEST_P(Shrink, AgreeStandsInTheOrderOfCalls) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    ccomStream_t stream = nullptr;
    ASSERT_EQ(ccomStreamCreate(&stream), ccomSuccess);
    std::vector<int> data(100000, 1);
    for (int call = 0; call < 20; ++call) {
      ASSERT_EQ(ccomAllReduce(data.data(), data.data(), data.size(), ccomInt32, ccomMax, comm, stream), ccomSuccess);
      int flags = ~(1 << rank);
      ASSERT_EQ(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomSuccess) << ccomGetLastError(nullptr);
      ASSERT_EQ(flags, ~7);
    }
    ASSERT_EQ(ccomStreamSynchronize(stream, 60000), ccomSuccess);
    ASSERT_EQ(ccomStreamDestroy(stream), ccomSuccess);
  });
}

TEST_P(Shrink, RefusesWhatCannotBe) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    ccomComm_t smaller = nullptr;
    const int out = 2, self = rank;
    EXPECT_EQ(ccomCommShrink(comm, nullptr, 0, nullptr, nullptr, 0), ccomInvalidArgument);
    EXPECT_EQ(ccomCommShrink(comm, nullptr, 1, &smaller, nullptr, 0), ccomInvalidArgument);
    EXPECT_EQ(ccomCommShrink(comm, &out, 1, &smaller, nullptr, 0), ccomInvalidArgument);
    EXPECT_EQ(ccomCommShrink(comm, &self, 1, &smaller, nullptr, 0), ccomInvalidArgument);
    EXPECT_EQ(ccomCommShrink(comm, nullptr, 0, &smaller, nullptr, 7), ccomInvalidArgument);
    EXPECT_EQ(ccomCommRevoke(comm, 1), ccomInvalidArgument);
    EXPECT_EQ(ccomCommAgree(comm, nullptr, nullptr, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomCommFinalize(comm), ccomSuccess);
    EXPECT_EQ(ccomCommShrink(comm, nullptr, 0, &smaller, nullptr, 0), ccomInvalidUsage);
  });
}

TEST_P(Shrink, ThatDoesNotBlockEndsInTheBackground) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.blocking = 0;
    ccomComm_t smaller = nullptr;
    ASSERT_EQ(ccomCommShrink(comm, nullptr, 0, &smaller, &config, 0), ccomInProgress) << ccomGetLastError(nullptr);
    EXPECT_TRUE(wait_until([smaller] { return async_error(smaller) != ccomInProgress; }));
    check_and_destroy(smaller, rank, {0, 1, 2});
  });
}

// 3 ranks and 2 that join them, on one host and on several; and back.
void grow_and_shrink(int hosts) {
  ccomUniqueId first, joining;
  ASSERT_EQ(ccomGetUniqueId(&first), ccomSuccess);
  std::latch is_made(1);
  run_ranks(5, [&](int rank) {
    const std::string host = "host" + std::to_string(hosts == 1 ? 0 : rank % hosts);
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.hostId = host.c_str();
    ccomComm_t comm = nullptr, larger = nullptr;
    if (rank < 3) {
      ASSERT_EQ(ccomCommInitRankConfig(&comm, 3, first, rank, &config), ccomSuccess) << ccomGetLastError(nullptr);
      if (rank == 1) {
        ASSERT_EQ(ccomCommGetUniqueId(comm, &joining), ccomSuccess) << ccomGetLastError(nullptr);
        is_made.count_down();
      }
      ASSERT_EQ(ccomCommGrow(comm, 5, rank == 1 ? &joining : nullptr, -1, &larger, nullptr), ccomSuccess)
          << ccomGetLastError(nullptr);
      EXPECT_EQ(gathered(comm, rank), (std::vector<int>{0, 1, 2}));
      ASSERT_EQ(ccomCommDestroy(comm), ccomSuccess);
    } else {
      is_made.wait();
      ASSERT_EQ(ccomCommGrow(nullptr, 5, &joining, rank, &larger, &config), ccomSuccess) << ccomGetLastError(nullptr);
    }
    EXPECT_EQ(gathered(larger, rank), (std::vector<int>{0, 1, 2, 3, 4}));
    const std::vector<int> of_old{0, 1, 2, -1, -1}, of_new(5, -1);
    EXPECT_EQ(parent_ranks(larger), rank < 3 ? of_old : of_new);
    if (rank > 0) check_and_destroy(shrink(larger, {0}), rank, {1, 2, 3, 4});
    EXPECT_EQ(ccomCommDestroy(larger), ccomSuccess);
  });
}

TEST(Grow, TakesNewRanksInOnOneHost) { grow_and_shrink(1); }
TEST(Grow, TakesNewRanksInOnTwoHosts) { grow_and_shrink(2); }

TEST(Grow, RefusesWhatCannotBe) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    ccomComm_t larger = nullptr;
    ccomUniqueId id;
    ASSERT_EQ(ccomCommGetUniqueId(comm, &id), ccomSuccess) << ccomGetLastError(nullptr);
    EXPECT_EQ(ccomCommGrow(comm, 2, &id, -1, &larger, nullptr), ccomInvalidArgument) << "no larger";
    EXPECT_EQ(ccomCommGrow(comm, 3, &id, rank, &larger, nullptr), ccomInvalidArgument) << "another rank";
    EXPECT_EQ(ccomCommGrow(nullptr, 3, nullptr, 2, &larger, nullptr), ccomInvalidArgument) << "no id";
    EXPECT_EQ(ccomCommGrow(comm, 3, nullptr, -1, &larger, nullptr), ccomInvalidArgument) << "nobody's id";
    EXPECT_EQ(ccomCommGrow(comm, 3, &id, -1, &larger, nullptr), ccomInvalidArgument) << "two ids";
    EXPECT_EQ(ccomCommGrow(comm, 3 + rank, rank == 0 ? &id : nullptr, -1, &larger, nullptr), ccomConfigError);
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.initTimeoutMs = 500;
    EXPECT_EQ(ccomCommGrow(comm, 3, rank == 0 ? &id : nullptr, -1, &larger, &config), ccomTimeout) << "nobody joins";
    EXPECT_EQ(larger, nullptr);
    EXPECT_EQ(gathered(comm, rank), (std::vector<int>{0, 1})) << "the whole stays as it was";
  });
}

size_t resident_pages() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

// Three ranks are split, go on as two, take a new third one in, and end.
void live_and_change() {
  ccomUniqueId first, joining;
  ASSERT_EQ(ccomGetUniqueId(&first), ccomSuccess) << ccomGetLastError(nullptr);
  std::latch is_made(1);
  run_ranks(3, [&](int rank) {
    ccomComm_t comm = nullptr, part = nullptr, larger = nullptr;
    ASSERT_EQ(ccomCommInitRank(&comm, 3, first, rank), ccomSuccess) << ccomGetLastError(nullptr);
    ASSERT_EQ(ccomCommSplit(comm, rank % 2, 0, &part, nullptr), ccomSuccess) << ccomGetLastError(nullptr);
    ASSERT_EQ(ccomCommDestroy(part), ccomSuccess);
    if (rank < 2) {
      const ccomComm_t smaller = shrink(comm, {2});
      ASSERT_EQ(gathered(smaller, rank), (std::vector<int>{0, 1}));
      if (rank == 0) {
        ASSERT_EQ(ccomCommGetUniqueId(smaller, &joining), ccomSuccess) << ccomGetLastError(nullptr);
        is_made.count_down();
      }
      ASSERT_EQ(ccomCommGrow(smaller, 3, rank == 0 ? &joining : nullptr, -1, &larger, nullptr), ccomSuccess)
          << ccomGetLastError(nullptr);
      ASSERT_EQ(ccomCommDestroy(smaller), ccomSuccess);
    } else {
      is_made.wait();
      ASSERT_EQ(ccomCommGrow(nullptr, 3, &joining, 2, &larger, nullptr), ccomSuccess) << ccomGetLastError(nullptr);
    }
    ASSERT_EQ(ccomCommDestroy(comm), ccomSuccess);
    check_and_destroy(larger, rank, {0, 1, 2});
  });
}

// CCOM_TEST_POINTS cycles: 6,000 take ten minutes. gRPC keeps a thread more or less, and its descriptors, by the load.
TEST(Grow, SplitAndShrinkLeaveNothingBehind) {
  const char* const points = std::getenv("CCOM_TEST_POINTS");
  const int cycles = points == nullptr ? 20 : std::atoi(points);
  for (int i = 0; i < 5; ++i) live_and_change();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // gRPC's threads come and go for a moment
  constexpr int kOfGrpc = 4;
  const int descriptors = kOfGrpc + open_descriptors(), threads = kOfGrpc + running_threads();
  const size_t pages = resident_pages();
  for (int i = 0; i < cycles && !HasFailure(); ++i) live_and_change();
  // Servers of ids end a little later.
  EXPECT_TRUE(wait_until([&] { return open_descriptors() <= descriptors; }))
      << open_descriptors() << ", not " << descriptors;
  EXPECT_TRUE(wait_until([&] { return running_threads() <= threads; })) << running_threads() << ", not " << threads;
  std::printf("%d cycles: %.1f MiB more\n", cycles,
              (static_cast<double>(resident_pages()) - static_cast<double>(pages)) / 256);
}

}  // namespace
}  // namespace ccom
