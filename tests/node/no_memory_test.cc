// SPDX-License-Identifier: Apache-2.0
//
// The k-th allocation of a call in shared memory fails, for every k there is. The rank gets ccomOutOfMemory, the others
// an error, and nobody is at the rank's mapped buffers when its call has returned.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/node/node_cases.h"

namespace {

thread_local long allocations_left = -1;  // of this thread, until one fails; -1: none does

bool fails() { return allocations_left >= 0 && allocations_left-- == 0; }

}  // namespace

#include "tests/operator_new.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr size_t kCount = size_t{1} << 21;
constexpr float kCanary = -7;

// Rank 0 without memory after `allowed` allocations; whether it ran out.
bool run_out_of_memory(long allowed) {
  NodeCrew crew({.within = Within::OneProcess});
  std::atomic<bool> has_returned{false};
  bool ran_out = false;
  crew.run([&](int rank, ShmCollectives& group) {
    std::vector<float> data(kCount, 1);
    const NodeTask task = node_task(Collective::AllReduce, crew.ranks(), -1);
    const NodeCall call = in_place_call(crew.prepared(rank, task, choice_of({}, task, kCount * sizeof(float))), data);
    const CallWords words = words_of(call, 1);
    if (rank != 0) {
      (void)group.run(call, words, 10s);  // fails, but where rank 0 had done its part
      while (!has_returned) std::this_thread::yield();
      return;
    }
    allocations_left = allowed;
    const Status status = group.run(call, words, 10s);
    ran_out = allocations_left < 0;
    allocations_left = -1;
    EXPECT_EQ(status.is_ok(), !ran_out);
    if (ran_out) {
      EXPECT_EQ(status.code(), Code::OutOfMemory) << status.message();
    }
    std::ranges::fill(data, kCanary);
    std::this_thread::sleep_for(ran_out ? 5ms : 0ms);  // for what comes late
    EXPECT_TRUE(std::ranges::all_of(data, [](float value) { return value == kCanary; })) << "written after the return";
    has_returned = true;
  });
  return ran_out;
}

// The others are in the middle of a sum of theirs, which an operator of the user's makes last. Whether one still was
// when the call without memory returned.
bool is_overtaken(long allowed, bool& ran_out) {
  NodeCrew crew({.ranks = 2, .within = Within::OneProcess});
  std::atomic<int> sums{0};
  std::atomic<bool> has_returned{false};
  bool is_at_it = false;
  crew.run([&](int rank, ShmCollectives& group) {
    UserOperator sum(
        [&](const std::byte*, std::byte*, size_t, DataType) {
          if (rank == 0) return Status();
          ++sums;
          std::this_thread::sleep_for(50ms);
          --sums;
          return Status();
        },
        true, 1);
    std::vector<float> data(30000, 1);
    const NodeTask task = node_task(Collective::AllReduce, crew.ranks(), -1);
    NodeCall call = in_place_call(crew.prepared(rank, task, choice_of({}, task, data.size() * sizeof(float))), data);
    call.op = sum.op();
    call.user = &sum;
    allocations_left = rank == 0 ? allowed : -1;
    const Status status = group.run(call, words_of(call, 1), 10s);
    if (rank == 0) {
      is_at_it = sums > 0;
      ran_out = allocations_left < 0;
      allocations_left = -1;
      EXPECT_EQ(status.code(), ran_out ? Code::OutOfMemory : Code::Ok) << status.message();
      has_returned = true;
    }
    while (!has_returned) std::this_thread::yield();  // its memory is others'
  });
  return is_at_it;
}

TEST(NoMemory, WaitsForThoseWhoAreInTheMiddleOfASum) {
  bool ran_out = true;
  long allowed = 0;
  for (; ran_out; ++allowed) EXPECT_FALSE(is_overtaken(allowed, ran_out)) << "after " << allowed << " allocations";
  EXPECT_GT(allowed, 3);
}

TEST(NoMemory, AtAnyPointOfACallLeavesNobodyAtTheBuffers) {
  long allowed = 0;
  while (run_out_of_memory(allowed)) ++allowed;
  EXPECT_GT(allowed, 3);
  std::printf("%ld allocations in a call\n", allowed);
}

}  // namespace
}  // namespace ccom
