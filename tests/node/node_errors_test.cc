// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong in shared memory is said by all, names who, and leaves nobody's buffers in anybody's hands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/node/node_crew.h"

namespace ccom {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

NodeCall sum_of(std::vector<float>& data) {
  NodeCall call;
  call.input = call.output = reinterpret_cast<std::byte*>(data.data());
  call.count = data.size();
  call.in_place = true;
  return call;
}

TEST(NodeErrors, AMismatchIsFoundByAllAndNamesBothCalls) {
  for (const size_t count : {size_t{4}, size_t{5000}}) {
    for (const Within within : {Within::Nothing, Within::OneProcess}) {
      NodeCrew crew({.ranks = 3, .within = within});
      crew.run([&](int rank, ShmCollectives& group) {
        std::vector<float> data(rank == 1 ? count + 1 : count, 1);
        const NodeCall call = sum_of(data);
        const Status status = group.run(call, words_of(call, 1), 10s);
        EXPECT_EQ(status.code(), Code::Mismatch);
        EXPECT_THAT(status.message(), HasSubstr("of " + std::to_string(count) + " elements"));
        EXPECT_THAT(status.message(), HasSubstr("of " + std::to_string(count + 1) + " elements"));
        EXPECT_THAT(status.peers(), testing::Contains(1));
      });
    }
  }
}

TEST(NodeErrors, ALateRankIsNamed) {
  NodeCrew crew({.ranks = 3});
  crew.run([&](int rank, ShmCollectives& group) {
    if (rank == 2) return;
    std::vector<float> data(8, 1);
    const NodeCall call = sum_of(data);
    const Status status = group.run(call, words_of(call, 1), 50ms);
    EXPECT_EQ(status.code(), Code::Timeout);
    EXPECT_THAT(status.peers(), testing::ElementsAre(2));
  });
}

TEST(NodeErrors, AnErrorIsFinal) {
  NodeCrew crew({.ranks = 2});
  crew.run([&](int rank, ShmCollectives& group) {
    std::vector<float> data(8, 1);
    const NodeCall call = sum_of(data);
    if (rank != 0) return;
    EXPECT_EQ(group.run(call, words_of(call, 1), 20ms).code(), Code::Timeout);
  });
  crew.run([&](int, ShmCollectives& group) {
    std::vector<float> data(8, 1);
    const NodeCall call = sum_of(data);
    EXPECT_EQ(group.run(call, words_of(call, 2), 10s).code(), Code::Timeout);
  });
}

TEST(NodeErrors, AnAbortWakesASleeper) {
  NodeCrew crew({.ranks = 2});
  crew.run([&](int rank, ShmCollectives& group) {
    if (rank == 1) {
      std::this_thread::sleep_for(50ms);  // the other one sleeps by now
      EXPECT_FALSE(crew.monitor(1).report(error(Code::Aborted, "enough")).is_ok());
      crew.group(0).wake();
      return;
    }
    std::vector<float> data(8, 1);
    const NodeCall call = sum_of(data);
    EXPECT_EQ(group.run(call, words_of(call, 1), 30s).code(), Code::Aborted);
  });
}

// One rank gives up in the middle of a call while others are at its buffers: after its return they must not write
// there.
TEST(NodeErrors, NobodyWritesToABufferAfterItsOwnersCallHasFailed) {
  constexpr size_t kCount = size_t{1} << 20;
  for (int round = 0; round < 20; ++round) {
    NodeCrew crew({.ranks = 3, .within = Within::OneProcess});
    std::atomic<bool> started = false;
    crew.run([&](int rank, ShmCollectives& group) {
      std::vector<float> data(kCount, static_cast<float>(rank));
      NodeCall call = sum_of(data);
      std::thread aborter;
      if (rank == 0) {
        aborter = std::thread([&] {
          while (!started) std::this_thread::yield();
          std::this_thread::sleep_for(std::chrono::microseconds(round * 60));
          EXPECT_FALSE(crew.monitor(0).report(error(Code::Aborted, "enough")).is_ok());
        });
      }
      started = true;
      Status status;
      for (uint64_t i = 1; status.is_ok(); ++i) status = group.run(call, words_of(call, i), 10s);
      EXPECT_EQ(status.code(), Code::Aborted);
      std::ranges::fill(data, 1234.0F);
      std::this_thread::sleep_for(5ms);
      EXPECT_TRUE(std::ranges::all_of(data, [](float x) { return x == 1234.0F; }));
      if (aborter.joinable()) aborter.join();
    });
  }
}

}  // namespace
}  // namespace ccom
