// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong in shared memory is said by all, names who, and leaves nobody's buffers in anybody's hands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "tests/node/node_cases.h"

namespace ccom {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

NodeCall sum_of(NodeCrew& crew, int rank, std::vector<float>& data) {
  const NodeTask task = node_task(Collective::AllReduce, crew.ranks(), -1);
  return in_place_call(crew.prepared(rank, task, choice_of({}, task, data.size() * sizeof(float))), data);
}

TEST(NodeErrors, AMismatchIsFoundByAllAndNamesBothCalls) {
  for (const size_t count : {size_t{4}, size_t{5000}}) {
    for (const Within within : {Within::Nothing, Within::OneProcess}) {
      NodeCrew crew({.ranks = 3, .within = within});
      crew.run([&](int rank, ShmCollectives& group) {
        std::vector<float> data(rank == 1 ? count + 1 : count, 1);
        const NodeCall call = sum_of(crew, rank, data);
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
    const NodeCall call = sum_of(crew, rank, data);
    const Status status = group.run(call, words_of(call, 1), 50ms);
    EXPECT_EQ(status.code(), Code::Timeout);
    EXPECT_THAT(status.peers(), testing::ElementsAre(2));
  });
}

TEST(NodeErrors, AnErrorIsFinal) {
  NodeCrew crew({.ranks = 2});
  crew.run([&](int rank, ShmCollectives& group) {
    std::vector<float> data(8, 1);
    const NodeCall call = sum_of(crew, rank, data);
    if (rank != 0) return;
    EXPECT_EQ(group.run(call, words_of(call, 1), 20ms).code(), Code::Timeout);
  });
  crew.run([&](int rank, ShmCollectives& group) {
    std::vector<float> data(8, 1);
    const NodeCall call = sum_of(crew, rank, data);
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
    const NodeCall call = sum_of(crew, rank, data);
    EXPECT_EQ(group.run(call, words_of(call, 1), 30s).code(), Code::Aborted);
  });
}

// What is not proved does not run: whoever is reached, and once for each reach.
TEST(NodeErrors, APlanThatIsRefusedWritesNothing) {
  for (const Within within : {Within::Nothing, Within::OneProcess}) {
    std::atomic<int> asked = 0;
    const auto refuse_mapped = [&](const NodeTask&, const NodeChoice&, std::span<const Reach> reach) -> Status {
      ++asked;
      if (!reach[0].output) return {};
      return error(Code::InternalError, "a contribution is missing");
    };
    const bool is_refused = within == Within::OneProcess;
    NodeCrew crew({.ranks = 3, .within = within, .prove = refuse_mapped});
    crew.run([&](int rank, ShmCollectives& group) {
      const std::vector<float> before(40000, 1);
      for (uint64_t number = 1; number <= 3; ++number) {
        std::vector<float> data = before;
        const NodeCall call = sum_of(crew, rank, data);
        const Status status = group.run(call, words_of(call, number), 10s);
        EXPECT_EQ(status.code(), is_refused ? Code::InternalError : Code::Ok);
        EXPECT_EQ(data, is_refused ? before : std::vector<float>(before.size(), 3));
        if (!is_refused) continue;
        EXPECT_THAT(status.message(), HasSubstr("a contribution is missing"));
        break;
      }
    });
    // A refusal on one rank may end the call on another before it has asked.
    EXPECT_GE(asked, is_refused ? 1 : 3);
    EXPECT_LE(asked, 3);
  }
}

// Its memory is gone when its process is, before anybody knows of its death.
TEST(NodeErrors, ARankWhoseMemoryCannotBeReadIsNamed) {
  constexpr size_t kCount = 40000;
  void* const gone = ::mmap(nullptr, kCount * sizeof(float), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  NodeCrew crew({.ranks = 3, .reads = true});
  const NodeTask task = node_task(Collective::Broadcast, crew.ranks(), 1);
  crew.run([&](int rank, ShmCollectives& group) {
    std::vector<float> data(kCount, 1);
    const NodeChoice choice = choice_of({.reads = true}, task, kCount * sizeof(float));
    NodeCall call = in_place_call(crew.prepared(rank, task, choice), data);
    if (rank == 1) {
      call.output = static_cast<std::byte*>(gone);
      call.input = call.output;
    }
    const Status status = group.run(call, words_of(call, 1), 10s);
    EXPECT_EQ(status.code(), Code::RemoteError) << "rank " << rank << ": " << status.message();
    EXPECT_THAT(status.peers(), testing::ElementsAre(1)) << status.message();
  });
  ::munmap(gone, kCount * sizeof(float));
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
      NodeCall call = sum_of(crew, rank, data);
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
      std::this_thread::sleep_for(5ms);  // for what comes late
      EXPECT_TRUE(std::ranges::all_of(data, [](float x) { return x == 1234.0F; }));
      if (aborter.joinable()) aborter.join();
    });
  }
}

}  // namespace
}  // namespace ccom
