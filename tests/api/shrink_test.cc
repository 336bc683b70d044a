// SPDX-License-Identifier: Apache-2.0
//
// ccomCommRevoke, ccomCommAgree and ccomCommShrink, ranks as threads: who is left, before an error and after one, and
// what is refused. Deaths: tests/processes/survivors_test.cc.
#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/effort.h"
#include "tests/harness/resources.h"
#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

ccomComm_t shrink(ccomComm_t comm, std::vector<int> excluded = {}, int flags = CCOM_SHRINK_DEFAULT) {
  ccomComm_t smaller = nullptr;
  EXPECT_OK(ccomCommShrink(comm, excluded.empty() ? nullptr : excluded.data(), static_cast<int>(excluded.size()),
                           &smaller, nullptr, flags));
  return smaller;
}

void check_and_destroy(ccomComm_t comm, int rank, const std::vector<int>& members) {
  ASSERT_NE(comm, nullptr);
  EXPECT_EQ(gathered(comm, rank), members);
  EXPECT_OK(ccomCommDestroy(comm));
}

std::vector<int> parent_ranks(ccomComm_t comm) {
  std::vector<int> ranks(static_cast<size_t>(ranks_of(comm)), -2);
  EXPECT_OK(ccomCommGetParentRanks(comm, ranks.data()));
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
      EXPECT_OK(ccomCommDestroy(again));
    }
    EXPECT_OK(ccomCommDestroy(smaller));
  });
}

TEST_P(Shrink, OfAllRanksMakesOneThatIsAlike) {
  with_ranks(3, [](int rank, ccomComm_t comm) { check_and_destroy(shrink(comm), rank, {0, 1, 2}); });
}

TEST_P(Shrink, WorksAfterAnErrorAndAgain) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    if (rank == 1) {
      EXPECT_OK(ccomCommAbort(comm));
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
      EXPECT_OK(ccomCommDestroy(std::exchange(comm, nullptr)));
      has_left.count_down();
      return;
    }
    has_left.wait();
    int flags = rank == 2 ? 6 : 7, lost[3] = {-1, -1, -1}, count = -1;
    EXPECT_OK(ccomCommAgree(comm, &flags, lost, &count));
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
      EXPECT_OK(ccomCommRevoke(comm, 0));
    } else {
      EXPECT_ERROR(ccomBarrier(comm, nullptr), ccomRevoked, "rank 0 revoked");
    }
    EXPECT_EQ(ccomBarrier(comm, nullptr), ccomRevoked);
    int flags = -1;
    EXPECT_OK(ccomCommAgree(comm, &flags, nullptr, nullptr));
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
    EXPECT_OK(ccomCommSetTimeout(comm, 300));
    int flags = 1;
    if (rank != 2) {
      EXPECT_ERROR(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomTimeout, "rank 2 ");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));  // three times what the others wait
      EXPECT_EQ(ccomCommAgree(comm, &flags, nullptr, nullptr), ccomTimeout) << "it is too late, as all have heard";
    }
    EXPECT_OK(async_error(comm)) << "no error of the communicator";
    EXPECT_OK(ccomCommSetTimeout(comm, 60000));
    EXPECT_OK(ccomCommAgree(comm, &flags, nullptr, nullptr));
  });
}

TEST_P(Shrink, AgreeWithOtherArgumentsIsAMismatch) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    int flags = 1;
    ccomComm_t smaller = nullptr;
    const ccomResult_t result = rank == 1 ? ccomCommShrink(comm, nullptr, 0, &smaller, nullptr, 0)
                                          : ccomCommAgree(comm, &flags, nullptr, nullptr);
    EXPECT_EQ(result, ccomMismatch);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("rank 1 makes another call"));
  });
}

TEST_P(Shrink, AgreeStandsInTheOrderOfCalls) {
  with_ranks(3, [](int rank, ccomComm_t comm) {
    const ccomStream_t stream = new_stream();
    std::vector<int> data(100000, 1);
    for (int call = 0; call < 20; ++call) {
      ASSERT_OK(ccomAllReduce(data.data(), data.data(), data.size(), ccomInt32, ccomMax, comm, stream));
      int flags = ~(1 << rank);
      ASSERT_OK(ccomCommAgree(comm, &flags, nullptr, nullptr));
      ASSERT_EQ(flags, ~7);
    }
    ASSERT_OK(ccomStreamSynchronize(stream, 60000));
    ASSERT_OK(ccomStreamDestroy(stream));
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
    EXPECT_OK(ccomCommFinalize(comm));
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

// U19: by an id that has been used, ranks waited for the whole time of a start.
void refuses_to_grow(ccomComm_t comm, int nranks, const ccomUniqueId* used) {
  ccomComm_t larger = nullptr;
  EXPECT_EQ(ccomCommGrow(comm, nranks, used, -1, &larger, nullptr), ccomInvalidArgument);
  EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("rank 1 gives an id by which ranks have met before"));
}

// 3 ranks and 2 that join them, on one host and on several; and back.
void grow_and_shrink(int hosts) {
  ccomUniqueId first, joining;
  ASSERT_OK(ccomGetUniqueId(&first));
  std::latch is_made(1);
  run_ranks(5, [&](int rank) {
    const std::string host = "host" + std::to_string(hosts == 1 ? 0 : rank % hosts);
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.hostId = host.c_str();
    ccomComm_t comm = nullptr, larger = nullptr;
    if (rank < 3) {
      ASSERT_OK(ccomCommInitRankConfig(&comm, 3, first, rank, &config));
      if (rank == 1) {
        ASSERT_OK(ccomCommGetUniqueId(comm, &joining));
        is_made.count_down();
      }
      ASSERT_OK(ccomCommGrow(comm, 5, rank == 1 ? &joining : nullptr, -1, &larger, nullptr));
      EXPECT_EQ(gathered(comm, rank), (std::vector<int>{0, 1, 2}));
      refuses_to_grow(comm, 5, rank == 1 ? &joining : nullptr);
      ASSERT_OK(ccomCommDestroy(comm));
    } else {
      is_made.wait();
      ASSERT_OK(ccomCommGrow(nullptr, 5, &joining, rank, &larger, &config));
    }
    EXPECT_EQ(gathered(larger, rank), (std::vector<int>{0, 1, 2, 3, 4}));
    refuses_to_grow(larger, 6, rank == 1 ? &joining : nullptr);
    const std::vector<int> of_old{0, 1, 2, -1, -1}, of_new(5, -1);
    EXPECT_EQ(parent_ranks(larger), rank < 3 ? of_old : of_new);
    if (rank > 0) check_and_destroy(shrink(larger, {0}), rank, {1, 2, 3, 4});
    EXPECT_OK(ccomCommDestroy(larger));
  });
}

TEST(Grow, TakesNewRanksInOnOneHost) { grow_and_shrink(1); }
TEST(Grow, TakesNewRanksInOnTwoHosts) { grow_and_shrink(2); }

TEST(Grow, RefusesWhatCannotBe) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    ccomComm_t larger = nullptr;
    ccomUniqueId id;
    ASSERT_OK(ccomCommGetUniqueId(comm, &id));
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

// Three ranks are split, go on as two, take a new third one in, and end.
void live_and_change() {
  ccomUniqueId first, joining;
  ASSERT_OK(ccomGetUniqueId(&first));
  std::latch is_made(1);
  run_ranks(3, [&](int rank) {
    ccomComm_t comm = nullptr, part = nullptr, larger = nullptr;
    ASSERT_OK(ccomCommInitRank(&comm, 3, first, rank));
    ASSERT_OK(ccomCommSplit(comm, rank % 2, 0, &part, nullptr));
    ASSERT_OK(ccomCommDestroy(part));
    if (rank < 2) {
      const ccomComm_t smaller = shrink(comm, {2});
      ASSERT_EQ(gathered(smaller, rank), (std::vector<int>{0, 1}));
      if (rank == 0) {
        ASSERT_OK(ccomCommGetUniqueId(smaller, &joining));
        is_made.count_down();
      }
      ASSERT_OK(ccomCommGrow(smaller, 3, rank == 0 ? &joining : nullptr, -1, &larger, nullptr));
      ASSERT_OK(ccomCommDestroy(smaller));
    } else {
      is_made.wait();
      ASSERT_OK(ccomCommGrow(nullptr, 3, &joining, 2, &larger, nullptr));
    }
    ASSERT_OK(ccomCommDestroy(comm));
    check_and_destroy(larger, rank, {0, 1, 2});
  });
}

// CCOM_TEST_POINTS cycles: 6,000 take ten minutes. gRPC keeps a thread more or less, and its descriptors, by the load.
TEST(Grow, SplitAndShrinkLeaveNothingBehind) {
  const size_t cycles = count_from("CCOM_TEST_POINTS", 20, 20);
  for (int i = 0; i < 5; ++i) live_and_change();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // gRPC's threads come and go for a moment
  constexpr int kOfGrpc = 4;
  const int descriptors = kOfGrpc + open_descriptors(), threads = kOfGrpc + running_threads();
  const size_t bytes = resident_bytes();
  for (size_t i = 0; i < cycles && !HasFailure(); ++i) live_and_change();
  // Servers of ids end a little later.
  EXPECT_TRUE(wait_until([&] { return open_descriptors() <= descriptors; }))
      << open_descriptors() << ", not " << descriptors;
  EXPECT_TRUE(wait_until([&] { return running_threads() <= threads; })) << running_threads() << ", not " << threads;
  std::printf("%zu cycles: %.1f MiB more\n", cycles,
              (static_cast<double>(resident_bytes()) - static_cast<double>(bytes)) / (1 << 20));
}

}  // namespace
}  // namespace ccom
