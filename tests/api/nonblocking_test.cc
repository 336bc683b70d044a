// SPDX-License-Identifier: Apache-2.0
//
// Communicators whose starts and ends do not block (config.blocking = 0): what their handles say meanwhile, and how
// they are cancelled.
#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

using Clock = std::chrono::steady_clock;

ccomConfig_t nonblocking(int64_t init_timeout_ms = 60000) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.blocking = 0;
  config.initTimeoutMs = init_timeout_ms;
  return config;
}

ccomResult_t state(ccomComm_t comm) {
  ccomResult_t result = ccomSuccess;
  EXPECT_EQ(ccomCommGetAsyncError(comm, &result), ccomSuccess);
  return result;
}

ccomResult_t await(ccomComm_t comm) {
  wait_until([comm] { return state(comm) != ccomInProgress; });
  return state(comm);
}

int sum_of(ccomComm_t comm, int value) {
  int sum = -1;
  EXPECT_EQ(ccomAllReduce(&value, &sum, 1, ccomInt32, ccomSum, comm, nullptr), ccomSuccess) << ccomGetLastError(comm);
  return sum;
}

ccomUniqueId new_id() {
  ccomUniqueId id;
  EXPECT_EQ(ccomGetUniqueId(&id), ccomSuccess) << ccomGetLastError(nullptr);
  return id;
}

// All ranks of a job in one thread, which no call keeps.
std::vector<ccomComm_t> started(int nranks) {
  const ccomUniqueId id = new_id();
  const ccomConfig_t config = nonblocking();
  std::vector<ccomComm_t> comms(static_cast<size_t>(nranks));
  for (int rank = 0; rank < nranks; ++rank)
    EXPECT_EQ(ccomCommInitRankConfig(&comms[static_cast<size_t>(rank)], nranks, id, rank, &config), ccomInProgress);
  for (const ccomComm_t comm : comms) EXPECT_EQ(await(comm), ccomSuccess) << ccomGetLastError(comm);
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
  for (const ccomComm_t part : pair) ASSERT_EQ(await(part), ccomSuccess) << ccomGetLastError(part);
  each(pair, [](ccomComm_t part, int i) {
    int rank = -1;
    EXPECT_EQ(ccomCommUserRank(part, &rank), ccomSuccess);
    EXPECT_EQ(rank, 1 - i);
    EXPECT_EQ(sum_of(part, i + 5), 11);
  });
  for (const ccomComm_t part : pair) EXPECT_EQ(ccomCommFinalize(part), ccomInProgress);
  for (const ccomComm_t part : pair) EXPECT_EQ(await(part), ccomSuccess);
  for (const ccomComm_t part : pair) EXPECT_EQ(ccomCommDestroy(part), ccomSuccess);
  for (const ccomComm_t comm : comms) EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
}

TEST(NonBlocking, HandleRefusesCallsUntilItsStartIsOver) {
  const ccomUniqueId id = new_id();
  const ccomConfig_t config = nonblocking();
  ccomComm_t first = nullptr, second = nullptr;
  const auto begin = Clock::now();
  ASSERT_EQ(ccomCommInitRankConfig(&first, 2, id, 0, &config), ccomInProgress);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(state(first), ccomInProgress);
  int value = 1, sum = 0;
  EXPECT_EQ(ccomAllReduce(&value, &sum, 1, ccomInt32, ccomSum, first, nullptr), ccomInvalidUsage);
  EXPECT_NE(std::string(ccomGetLastError(nullptr)).find("still being started"), std::string::npos);
  EXPECT_EQ(ccomCommCount(first, &value), ccomInvalidUsage);
  EXPECT_EQ(ccomCommSplit(first, 0, 0, &second, nullptr), ccomInvalidUsage);
  ASSERT_EQ(ccomCommInitRankConfig(&second, 2, id, 1, &config), ccomInProgress);
  EXPECT_EQ(await(first), ccomSuccess);
  EXPECT_EQ(await(second), ccomSuccess);
  each({first, second}, [](ccomComm_t comm, int rank) { EXPECT_EQ(sum_of(comm, rank + 1), 3); });
  EXPECT_EQ(ccomCommDestroy(first), ccomSuccess);
  EXPECT_EQ(ccomCommDestroy(second), ccomSuccess);
}

TEST(NonBlocking, StartThatFailsIsTheHandlesError) {
  const ccomConfig_t config = nonblocking(300);
  ccomComm_t comm = nullptr;
  ASSERT_EQ(ccomCommInitRankConfig(&comm, 2, new_id(), 0, &config), ccomInProgress);
  EXPECT_EQ(await(comm), ccomTimeout);
  EXPECT_NE(std::string(ccomGetLastError(comm)).find("rank 1"), std::string::npos) << ccomGetLastError(comm);
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  EXPECT_EQ(ccomGetErrorInfo(comm, &info), ccomSuccess);
  EXPECT_EQ(info.result, ccomTimeout);
  float value = 1;
  EXPECT_EQ(ccomAllReduce(&value, &value, 1, ccomFloat32, ccomSum, comm, nullptr), ccomTimeout);
  EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
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
      EXPECT_EQ(ccomCommAbort(comm), ccomSuccess);
      EXPECT_EQ(await(comm), ccomAborted) << ccomGetLastError(comm);
    }
    EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
  }
}

TEST(NonBlocking, EndWaitsForQueuedCalls) {
  const std::vector<ccomComm_t> comms = started(2);
  ccomStream_t stream = nullptr;
  ASSERT_EQ(ccomStreamCreate(&stream), ccomSuccess);
  ASSERT_EQ(ccomBarrier(comms[0], stream), ccomSuccess);  // waits for rank 1
  EXPECT_EQ(ccomCommFinalize(comms[0]), ccomInProgress);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for an end that comes too early
  EXPECT_EQ(state(comms[0]), ccomInProgress);
  EXPECT_EQ(ccomBarrier(comms[1], nullptr), ccomSuccess);
  EXPECT_EQ(await(comms[0]), ccomSuccess);
  EXPECT_EQ(ccomBarrier(comms[0], nullptr), ccomInvalidUsage) << "it is finalized";
  EXPECT_EQ(ccomStreamDestroy(stream), ccomSuccess);
  for (const ccomComm_t comm : comms) EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
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
    EXPECT_EQ(await(comm), ccomSuccess);
    EXPECT_EQ(ccomCommDestroy(comm), ccomSuccess);
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
