// SPDX-License-Identifier: Apache-2.0
//
// The watch over other ranks of the host with made-up times and process numbers: when a rank that gives no beats counts
// as stopped or as starved, and when the watcher must not trust its own clock. Real deaths are in process_test.cc.
#include "liveness/node_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kStart = 1'000'000 * kMs;

// A board of three ranks (10, 11, 12); we are slot 0. Others are held by a thread that pretends to be another process.
class NodeWatchTest : public ::testing::Test {
 protected:
  NodeWatchTest() : board_(*Board::over(std::as_writable_bytes(std::span(memory_)), 3)) { board_.initialise(); }
  ~NodeWatchTest() override {
    end_.count_down();
    for (auto& thread : threads_) thread.join();
  }

  void arrive(int slot, uint64_t process) {
    std::latch taken(1);
    threads_.emplace_back([this, slot, process, &taken] {
      RobustFutexList robust_futexes;
      EXPECT_TRUE(board_.take(slot, process, robust_futexes).is_ok());
      taken.count_down();
      end_.wait();
      board_.leave(slot, robust_futexes);
    });
    taken.wait();
  }
  NodeWatch::Config config() {
    return {
        .host = "here",
        .ranks = {10, 11, 12},
        .own_slot = 0,
        .process = 1,
        .dead_ns = 100 * kMs,
        .state_of = [this](const BoardSlot& slot) { return states_[static_cast<size_t>(&slot - &board_.slot(0))]; }};
  }
  void beat(int slot) { board_.slot(slot).beats.fetch_add(1); }
  std::vector<int> blamed(int64_t ms) {
    const auto found = watch_.find_failures(kStart + ms * kMs);
    return found ? found->peers() : std::vector<int>{};
  }

  struct alignas(64) Line {
    std::byte bytes[64]{};
  };
  std::vector<Line> memory_{Board::bytes(3) / 64 + 1};
  Board board_;
  std::array<ThreadState, 3> states_{ThreadState::Waiting, ThreadState::Waiting, ThreadState::Waiting};
  NodeWatch watch_{board_, config()};
  std::latch end_{1};
  std::vector<std::thread> threads_;
};

TEST_F(NodeWatchTest, BlamesWhoeverGivesNoBeatsForTheWholeTime) {
  arrive(1, 2);
  arrive(2, 3);
  for (int ms = 0; ms < 100; ms += 5) {
    beat(2);
    EXPECT_THAT(blamed(ms), ElementsAre()) << ms;
  }
  beat(2);
  EXPECT_THAT(blamed(100), ElementsAre(11));
}

TEST_F(NodeWatchTest, BlamesNobodyWhoGetsNoCore) {
  arrive(1, 2);
  states_[1] = ThreadState::Runnable;
  for (int ms = 0; ms < 950; ms += 5) EXPECT_THAT(blamed(ms), ElementsAre()) << ms;
  states_[1] = ThreadState::Waiting;  // stopped: it was seen alive at 935 or later
  for (int ms = 950; ms < 1035; ms += 5) EXPECT_THAT(blamed(ms), ElementsAre()) << ms;
  EXPECT_THAT(blamed(1050), ElementsAre(11));
}

// Each part of a communicator has a watch of its own.
TEST_F(NodeWatchTest, SaysOfManyPartsOnceThatARankGetsNoCore) {
  arrive(1, 2);
  states_[1] = ThreadState::Runnable;
  // Lines that earlier tests left out are said before.
  set_log_function([](LogLevel, const char*, void*) {}, nullptr);
  set_log_function(nullptr, nullptr);
  std::vector<std::string> lines;
  set_log_function([](LogLevel, const char* message,
                      void* user) { static_cast<std::vector<std::string>*>(user)->emplace_back(message); },
                   &lines);
  for (int part = 0; part < 200; ++part) {
    NodeWatch watch(board_, config());
    for (int ms = 0; ms < 300; ms += 5) EXPECT_FALSE(watch.find_failures(kStart + ms * kMs));
  }
  set_log_function(nullptr, nullptr);
  EXPECT_LT(lines.size(), 40U) << "two a second of each kind";
  int silences = 0;
  int starvations = 0;
  for (const std::string& line : lines) {
    const size_t count = line.find(" (and ");
    (line.find("gets no core") != std::string::npos ? starvations : silences) +=
        1 + (count == std::string::npos ? 0 : std::atoi(line.c_str() + count + 6));
  }
  EXPECT_EQ(silences, 200);
  EXPECT_EQ(starvations, 200);
}

TEST_F(NodeWatchTest, BlamesWhoeverGivesNoBeatsWhereTheKernelDoesNotTell) {
  arrive(1, 2);
  states_[1] = ThreadState::Unknown;
  for (int ms = 0; ms < 100; ms += 5) EXPECT_THAT(blamed(ms), ElementsAre()) << ms;
  EXPECT_THAT(blamed(100), ElementsAre(11));
}

TEST_F(NodeWatchTest, DoesNotBlameARankThatHasJustCome) {
  for (int ms = 0; ms < 500; ms += 5) EXPECT_THAT(blamed(ms), ElementsAre());
  arrive(1, 2);
  EXPECT_THAT(blamed(500), ElementsAre());
  EXPECT_THAT(blamed(505), ElementsAre());
}

TEST_F(NodeWatchTest, JudgesNobodyByATimeInWhichItDidNotLook) {
  arrive(1, 2);
  EXPECT_THAT(blamed(0), ElementsAre());
  EXPECT_THAT(blamed(10'000), ElementsAre());  // we may have been stopped ourselves
  EXPECT_THAT(blamed(10'040), ElementsAre());
  EXPECT_THAT(blamed(10'080), ElementsAre());
  EXPECT_THAT(blamed(10'100), ElementsAre(11));
}

TEST_F(NodeWatchTest, NeedsNoBeatsOfRanksInTheOwnProcess) {
  arrive(1, 1);
  for (int ms = 0; ms < 1000; ms += 5) EXPECT_THAT(blamed(ms), ElementsAre());
}

TEST_F(NodeWatchTest, FindsTheDeadAtOnceAndTogether) {
  std::unique_ptr<RobustFutexList> robust_futexes;
  std::thread([this, &robust_futexes] {
    robust_futexes = std::make_unique<RobustFutexList>();
    for (int slot : {1, 2}) EXPECT_TRUE(board_.take(slot, 7, *robust_futexes).is_ok());
  }).join();
  EXPECT_THAT(blamed(0), ElementsAre(11, 12));
  EXPECT_THAT(blamed(1), ElementsAre(11, 12));
}

TEST_F(NodeWatchTest, FindsWhoeverIsKilledBesideTheDead) {
  std::unique_ptr<RobustFutexList> robust_futexes;
  std::thread([this, &robust_futexes] {
    robust_futexes = std::make_unique<RobustFutexList>();
    EXPECT_TRUE(board_.take(2, 7, *robust_futexes).is_ok());
  }).join();
  arrive(1, 2);
  EXPECT_THAT(blamed(0), ElementsAre(12));
  states_[1] = ThreadState::Ending;
  EXPECT_THAT(blamed(1), ElementsAre(11, 12));
}

TEST_F(NodeWatchTest, LeavesItToTheKernelToTellADeath) {  // a leaving rank's thread ends too
  arrive(1, 2);
  states_[1] = ThreadState::Ending;
  EXPECT_THAT(blamed(0), ElementsAre());
}

}  // namespace
}  // namespace ccom
