// SPDX-License-Identifier: Apache-2.0
//
// Communicators whose starts and ends do not block (config.blocking = 0): what their handles say meanwhile, and how
// they are cancelled.
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

using Clock = std::chrono::steady_clock;

ccomConfig_t nonblocking(int64_t init_timeout_ms = 60000) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.blocking = 0;
  config.initTimeoutMs = init_timeout_ms;
  return config;
}

ccomResult_t await(ccomComm_t comm) {
  wait_until([comm] { return async_error(comm) != ccomInProgress; });
  return async_error(comm);
}

int sum_of(ccomComm_t comm, int value) {
  int sum = -1;
  EXPECT_OK(ccomAllReduce(&value, &sum, 1, ccomInt32, ccomSum, comm, nullptr));
  return sum;
}

// All ranks of a job in one thread, which no call keeps.
std::vector<ccomComm_t> started(int nranks) {
  const ccomUniqueId id = new_id();
  const ccomConfig_t config = nonblocking();
  std::vector<ccomComm_t> comms(static_cast<size_t>(nranks));
  for (int rank = 0; rank < nranks; ++rank)
    EXPECT_EQ(ccomCommInitRankConfig(&comms[static_cast<size_t>(rank)], nranks, id, rank, &config), ccomInProgress);
  for (const ccomComm_t comm : comms) EXPECT_OK(await(comm));
  return comms;
}

void each(const std::vector<ccomComm_t>& comms, const std::function<void(ccomComm_t, int)>& run) {
  run_threads(static_cast<int>(comms.size()), [&](size_t i) { run(comms[i], static_cast<int>(i)); });
}

TEST(NonBlocking, OneThreadStartsSplitsAndEndsAllRanks) {
  const std::vector<ccomComm_t> comms = started(3);
  each(comms, [](ccomComm_t comm, int rank) { EXPECT_EQ(sum_of(comm, rank), 3); });
  std::vector<ccomComm_t> parts(3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ccomCommSplit(comms[static_cast<size_t>(rank)], rank == 1 ? CCOM_SPLIT_NOCOLOR : 0, -rank,
                            &parts[static_cast<size_t>(rank)], nullptr),
              ccomInProgress)
        << "inherited";
  }
  EXPECT_EQ(parts[1], nullptr);
  const std::vector<ccomComm_t> pair{parts[0], parts[2]};
  for (const ccomComm_t part : pair) ASSERT_OK(await(part));
  each(pair, [](ccomComm_t part, int i) {
    int rank = -1;
    EXPECT_OK(ccomCommUserRank(part, &rank));
    EXPECT_EQ(rank, 1 - i);
    EXPECT_EQ(sum_of(part, i + 5), 11);
  });
  for (const ccomComm_t part : pair) EXPECT_EQ(ccomCommFinalize(part), ccomInProgress);
  for (const ccomComm_t part : pair) EXPECT_OK(await(part));
  for (const ccomComm_t part : pair) EXPECT_OK(ccomCommDestroy(part));
  for (const ccomComm_t comm : comms) EXPECT_OK(ccomCommDestroy(comm));
}

TEST(NonBlocking, HandleRefusesCallsUntilItsStartIsOver) {
  const ccomUniqueId id = new_id();
  const ccomConfig_t config = nonblocking();
  ccomComm_t first = nullptr, second = nullptr;
  const auto begin = Clock::now();
  ASSERT_EQ(ccomCommInitRankConfig(&first, 2, id, 0, &config), ccomInProgress);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(async_error(first), ccomInProgress);
  int value = 1, sum = 0;
  EXPECT_ERROR(ccomAllReduce(&value, &sum, 1, ccomInt32, ccomSum, first, nullptr), ccomInvalidUsage,
               "still being started");
  EXPECT_EQ(ccomCommCount(first, &value), ccomInvalidUsage);
  EXPECT_EQ(ccomCommSplit(first, 0, 0, &second, nullptr), ccomInvalidUsage);
  ASSERT_EQ(ccomCommInitRankConfig(&second, 2, id, 1, &config), ccomInProgress);
  EXPECT_OK(await(first));
  EXPECT_OK(await(second));
  each({first, second}, [](ccomComm_t comm, int rank) { EXPECT_EQ(sum_of(comm, rank + 1), 3); });
  EXPECT_OK(ccomCommDestroy(first));
  EXPECT_OK(ccomCommDestroy(second));
}

TEST(NonBlocking, StartThatFailsIsTheHandlesError) {
  const ccomConfig_t config = nonblocking(300);
  ccomComm_t comm = nullptr;
  ASSERT_EQ(ccomCommInitRankConfig(&comm, 2, new_id(), 0, &config), ccomInProgress);
  EXPECT_EQ(await(comm), ccomTimeout);
  EXPECT_THAT(ccomGetLastError(comm), HasSubstr("rank 1"));
  const ccomErrorInfo_t info = error_info(comm);
  EXPECT_EQ(info.result, ccomTimeout);
  float value = 1;
  EXPECT_EQ(ccomAllReduce(&value, &value, 1, ccomFloat32, ccomSum, comm, nullptr), ccomTimeout);
  EXPECT_OK(ccomCommDestroy(comm));
}

// Nobody else ever comes.
TEST(NonBlocking, StartIsCancelled) {
  const ccomConfig_t config = nonblocking();
  for (const bool aborts : {false, true}) {
    ccomComm_t comm = nullptr;
    ASSERT_EQ(ccomCommInitRankConfig(&comm, 2, new_id(), 0, &config), ccomInProgress);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the start is under way
    const auto begin = Clock::now();
    if (aborts) {
      EXPECT_OK(ccomCommAbort(comm));
      EXPECT_EQ(await(comm), ccomAborted) << ccomGetLastError(comm);
    }
    EXPECT_OK(ccomCommDestroy(comm));
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  }
}

TEST(NonBlocking, EndWaitsForQueuedCalls) {
  const std::vector<ccomComm_t> comms = started(2);
  const ccomStream_t stream = new_stream();
  ASSERT_OK(ccomBarrier(comms[0], stream));  // waits for rank 1
  EXPECT_EQ(ccomCommFinalize(comms[0]), ccomInProgress);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for an end that comes too early
  EXPECT_EQ(async_error(comms[0]), ccomInProgress);
  EXPECT_OK(ccomBarrier(comms[1], nullptr));
  EXPECT_OK(await(comms[0]));
  EXPECT_EQ(ccomBarrier(comms[0], nullptr), ccomInvalidUsage) << "it is finalized";
  EXPECT_OK(ccomStreamDestroy(stream));
  for (const ccomComm_t comm : comms) EXPECT_OK(ccomCommDestroy(comm));
}

// Whether the end or the part has a thread already, or not yet.
TEST(NonBlocking, U2DestroyWaitsForAnEndAndForPartsOfOthers) {
  for (int round = 0; round < 50; ++round) {
    const std::vector<ccomComm_t> comms = started(2);
    const ccomStream_t stream = new_stream();
    if (round % 2 == 0) {
      ASSERT_OK(ccomBarrier(comms[0], stream));  // the end begins after it
      EXPECT_EQ(ccomCommFinalize(comms[0]), ccomInProgress);
    } else {
      ccomComm_t none = nullptr;
      EXPECT_EQ(ccomCommSplit(comms[0], CCOM_SPLIT_NOCOLOR, 0, &none, nullptr), ccomInProgress);
    }
    run_threads(2, [&](size_t i) {
      ccomComm_t part = nullptr;
      if (i == 0) {
        EXPECT_OK(ccomCommDestroy(comms[0]));
        return;
      }
      if (round % 2 == 0) {
        EXPECT_OK(ccomBarrier(comms[1], nullptr));
      } else {
        EXPECT_EQ(ccomCommSplit(comms[1], 0, 0, &part, nullptr), ccomInProgress);
        EXPECT_OK(await(part));
        EXPECT_OK(ccomCommDestroy(part));
      }
      EXPECT_OK(ccomCommDestroy(comms[1]));
    });
    EXPECT_OK(ccomStreamDestroy(stream));
  }
}

TEST(NonBlocking, EndIsBegunOnceByManyThreads) {
  for (int round = 0; round < 20; ++round) {
    const ccomComm_t comm = started(1)[0];
    std::atomic<int> begun{0};
    std::barrier<> together(4);
    run_threads(4, [&](int) {
      together.arrive_and_wait();
      const ccomResult_t result = ccomCommFinalize(comm);
      EXPECT_TRUE(result == ccomInProgress || result == ccomInvalidUsage) << ccomGetLastError(nullptr);
      begun += result == ccomInProgress ? 1 : 0;
    });
    EXPECT_GE(begun, 1);
    EXPECT_OK(await(comm));
    EXPECT_OK(ccomCommDestroy(comm));
  }
}

TEST(NonBlocking, RefusesBadSettings) {
  ccomConfig_t config = nonblocking();
  ccomComm_t comms[2] = {};
  EXPECT_EQ(ccomCommInitAll(comms, 2, &config), ccomInvalidArgument);
  config.blocking = 2;
  EXPECT_EQ(ccomCommInitRankConfig(comms, 1, new_id(), 0, &config), ccomInvalidArgument);
  EXPECT_EQ(comms[0], nullptr);
}

}  // namespace
}  // namespace ccom
