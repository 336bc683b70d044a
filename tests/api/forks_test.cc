// SPDX-License-Identifier: Apache-2.0
//
// Communicators of forked children: whoever may have them gets them, whatever the parent did at the fork, and whoever
// cannot is told so at once.
#include <ccom/ccom.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/harness/child.h"

namespace ccom {
namespace {

// Of this process, so that a child's children have others.
std::string url() { return "file:///tmp/ccom-forks-test-" + std::to_string(::getpid()); }

bool is_told(ccomResult_t result) {
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  ccomGetErrorInfo(nullptr, &info);
  return result == ccomInvalidUsage && std::string(info.key) == "CCOM-E020";
}

bool sum_by_stream(ccomComm_t comm, float expected) {
  ccomStream_t stream = nullptr;
  float in = 1, out = 0;
  return ccomStreamCreate(&stream) == ccomSuccess &&
         ccomAllReduce(&in, &out, 1, ccomFloat32, ccomSum, comm, stream) == ccomSuccess &&
         ccomStreamSynchronize(stream, -1) == ccomSuccess && out == expected &&
         ccomStreamDestroy(stream) == ccomSuccess;
}

bool sum_alone() {
  ccomComm_t comm = nullptr;
  return ccomCommInitAll(&comm, 1, nullptr) == ccomSuccess && sum_by_stream(comm, 1) &&
         ccomCommDestroy(comm) == ccomSuccess;
}

// Of two ranks, which are threads.
bool sum_of_two() {
  ccomComm_t comms[2] = {};
  if (ccomCommInitAll(comms, 2, nullptr) != ccomSuccess) return false;
  bool is_right[2] = {};
  std::thread other([&] { is_right[1] = sum_by_stream(comms[1], 2); });
  is_right[0] = sum_by_stream(comms[0], 2);
  other.join();
  return is_right[0] && is_right[1] && ccomCommDestroy(comms[0]) == ccomSuccess &&
         ccomCommDestroy(comms[1]) == ccomSuccess;
}

bool sum_over(const std::string& where, int nranks, int rank) {
  ccomUniqueId id;
  ccomComm_t comm = nullptr;
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.initTimeoutMs = 30000;
  const bool done = ccomUniqueIdFromUrl(where.c_str(), nranks, rank, &id) == ccomSuccess &&
                    ccomCommInitRankConfig(&comm, nranks, id, rank, &config) == ccomSuccess &&
                    sum_by_stream(comm, static_cast<float>(nranks)) && ccomCommDestroy(comm) == ccomSuccess;
  if (!done) std::fprintf(stderr, "rank %d: %s\n", rank, ccomGetLastError(nullptr));
  return done;
}

// They had their parent's number, and took themselves for two threads of one process.
TEST(Forks, SiblingsAreProcessesOfTheirOwn) {
  EXPECT_TRUE(sum_alone());
  const std::string where = url();
  Child first([&] { return sum_over(where, 2, 0) ? 0 : 1; });
  Child second([&] { return sum_over(where, 2, 1) ? 0 : 1; });
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

// With an id of its own, by a file, and with an id of its parent's. It was refused, as gRPC does not survive a fork.
TEST(Forks, AChildOfARankStartsOnItsHost) {
  SKIP_WHERE_ALLOCATORS_DO_NOT_FORK();
  EXPECT_TRUE(holds_in_child([] {
    ccomUniqueId before;
    if (!sum_over(url(), 1, 0) || ccomGetUniqueId(&before) != ccomSuccess) return false;
    return holds_in_child([&] {
      ::alarm(20);
      ccomUniqueId id;
      const auto sums = [](const ccomUniqueId& of) {
        ccomComm_t comm = nullptr;
        return ccomCommInitRank(&comm, 1, of, 0) == ccomSuccess && sum_by_stream(comm, 1) &&
               ccomCommDestroy(comm) == ccomSuccess;
      };
      return ccomGetUniqueId(&id) == ccomSuccess && sums(id) && sums(before) && sum_over(url(), 1, 0) && sum_alone();
    });
  }));
}

// Whatever it asks of it.
TEST(Forks, AChildIsToldThatACommunicatorIsItsParents) {
  EXPECT_TRUE(holds_in_child([] {
    ccomComm_t comm = nullptr;
    if (ccomCommInitAll(&comm, 1, nullptr) != ccomSuccess) return false;
    const bool is_refused = holds_in_child([comm] {
      ::alarm(20);
      float in = 1, out = 0;
      ccomResult_t seen = ccomSuccess;
      return is_told(ccomAllReduce(&in, &out, 1, ccomFloat32, ccomSum, comm, nullptr)) &&
             is_told(ccomBarrier(comm, nullptr)) && is_told(ccomCommGetAsyncError(comm, &seen)) &&
             is_told(ccomCommFinalize(comm)) && is_told(ccomCommAbort(comm)) && is_told(ccomCommDestroy(comm));
    });
    return is_refused && sum_by_stream(comm, 1) && ccomCommDestroy(comm) == ccomSuccess;
  }));
}

[[noreturn]] void call_without_end() {
  ccomComm_t comm = nullptr;
  ccomStream_t stream = nullptr;
  float in = 1, out = 0;
  if (ccomCommInitAll(&comm, 1, nullptr) != ccomSuccess || ccomStreamCreate(&stream) != ccomSuccess) ::_exit(3);
  for (;;) {
    for (int i = 0; i < 1000; ++i) (void)ccomAllReduce(&in, &out, 1, ccomFloat32, ccomSum, comm, stream);
    (void)ccomStreamSynchronize(stream, -1);
  }
}

// One in fifteen children hung: a thread of its parent's had been queueing a call.
TEST(Forks, AmidCallsLeaveNoLockToTheChild) {
  SKIP_WHERE_ALLOCATORS_DO_NOT_FORK();
  const int forks = std::getenv("CCOM_TEST_LONG") != nullptr ? 1000 : 80;
  EXPECT_TRUE(holds_in_child([forks] {
    ::alarm(600);
    for (int i = 0; i < 3; ++i) std::thread(call_without_end).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (int i = 0; i < forks; ++i)
      if (!holds_in_child([] { return ::alarm(30), sum_alone(); })) return false;
    return true;
  }));
}

// Eight children of a parent whose threads go on meanwhile, forked at other instants in each parent.
bool children_end_well(int parent, int apart_us, bool (*sum)()) {
  bool all_well = true;
  for (int child = 0; child < 8; ++child) {
    std::this_thread::sleep_for(std::chrono::microseconds(17 * parent + apart_us * child));
    all_well &= holds_in_child([sum] { return ::alarm(30), sum(); });
  }
  return all_well;
}

// They waited for ever for what the parent's threads were making for the first time.
TEST(Forks, AmidTheFirstStartsOfThreads) {
  SKIP_WHERE_ALLOCATORS_DO_NOT_FORK();
  const int parents = std::getenv("CCOM_TEST_LONG") != nullptr ? 300 : 20;
  for (int i = 0; i < parents; ++i) {
    ASSERT_TRUE(holds_in_child([i] {
      for (int thread = 0; thread < 2; ++thread) std::thread(call_without_end).detach();
      return children_end_well(i, 400, sum_alone);
    })) << i;
  }
}

// One in 400 children waited for ever for a lock of OpenSSL's.
TEST(Forks, AmidStartsWithTls) {
  SKIP_WHERE_ALLOCATORS_DO_NOT_FORK();
  const int parents = std::getenv("CCOM_TEST_LONG") != nullptr ? 300 : 20;
  for (int i = 0; i < parents; ++i) {
    ASSERT_TRUE(holds_in_child([i] {
      ::setenv("CCOM_TRANSPORT", "tcp", 1);
      ::setenv("CCOM_TLS", "1", 1);
      ::setenv("CCOM_SECRET", "a secret of this test alone, of no use elsewhere", 1);
      for (int thread = 0; thread < 3; ++thread)
        std::thread([] {
          while (sum_of_two()) continue;
          ::_exit(3);
        }).detach();
      return children_end_well(i, 3000, sum_of_two);
    })) << i;
  }
}

}  // namespace
}  // namespace ccom
