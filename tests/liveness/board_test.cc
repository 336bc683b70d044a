// SPDX-License-Identifier: Apache-2.0
//
// The board with threads of one process: the first error is kept and read whole by everybody, whatever the
// interleaving.
#include "liveness/board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/harness/threads.h"

namespace ccom {
namespace {

struct Memory {
  explicit Memory(int slots) : robust_futexes(Board::bytes(slots) / 64 + 1) {}
  Bytes bytes() { return std::as_writable_bytes(std::span(robust_futexes)); }
  struct alignas(64) Line {
    std::byte bytes[64]{};
  };
  std::vector<Line> robust_futexes;
};

TEST(Board, IsRefusedWhenTooSmallOrMisaligned) {
  Memory memory(4);
  EXPECT_FALSE(Board::over(memory.bytes().first(Board::bytes(4) - 1), 4));
  EXPECT_FALSE(Board::over(memory.bytes().subspan(8), 3));
  EXPECT_TRUE(Board::over(memory.bytes(), 4));
}

TEST(Board, IsReadyOnlyWhenInitialised) {
  Memory memory(2);
  Board board = *Board::over(memory.bytes(), 2);
  EXPECT_FALSE(board.is_ready());
  board.initialise();
  EXPECT_TRUE(board.is_ready());
  EXPECT_TRUE(board.error().is_ok());
}

TEST(Board, KeepsTheAbortWordOnALineOfItsOwn) {
  static_assert(offsetof(BoardHeader, abort_word) >= 128);
  static_assert(sizeof(BoardHeader) - offsetof(BoardHeader, abort_word) >= 128);
}

TEST(Board, GivesEverybodyTheFirstErrorWhole) {
  constexpr int kRanks = 8;
  for (int round = 0; round < 50; ++round) {
    Memory memory(kRanks);
    Board board = *Board::over(memory.bytes(), kRanks);
    board.initialise();
    std::atomic<int> winners{0};
    std::vector<std::string> seen(kRanks);
    run_ranks(kRanks, [&](int r) {
      if (board.publish(r, error(Code::Aborted, "rank %d says so", r).with_peers({r}))) ++winners;
      const Status in_force = board.error();
      EXPECT_EQ(in_force.peers().size(), 1u);
      EXPECT_EQ(in_force.message(), "rank " + std::to_string(in_force.peers()[0]) + " says so");
      seen[static_cast<size_t>(r)] = in_force.message();
    });
    EXPECT_EQ(winners, 1);
    for (const auto& text : seen) EXPECT_EQ(text, seen[0]);
    EXPECT_FALSE(board.publish(0, Status(Code::Aborted, "too late")));
    EXPECT_EQ(board.error().message(), seen[0]);
  }
}

TEST(Board, ReportsDamageInsteadOfReadingBeyondIt) {
  Memory memory(2);
  Board board = *Board::over(memory.bytes(), 2);
  board.initialise();
  ASSERT_TRUE(board.publish(1, Status(Code::Aborted, "x")));
  board.slot(1).error_bytes = 0xffffffff;
  EXPECT_EQ(board.error().code(), Code::InternalError);
  const_cast<std::atomic<uint32_t>&>(board.abort_word()).store(77);
  EXPECT_EQ(board.error().code(), Code::InternalError);
}

TEST(Board, TellsALeftSlotFromADeadOne) {
  Memory memory(2);
  Board board = *Board::over(memory.bytes(), 2);
  board.initialise();
  RobustFutexList robust_futexes;
  ASSERT_TRUE(board.take(0, 1, robust_futexes).is_ok());
  ASSERT_TRUE(board.take(1, 1, robust_futexes).is_ok());
  EXPECT_FALSE(board.take(0, 1, robust_futexes).is_ok()) << "taken twice";
  std::thread([board] { EXPECT_FALSE(board.has_died(0)); }).join();
  board.leave(0, robust_futexes);
  board.leave(1, robust_futexes);
  std::thread([board] { EXPECT_FALSE(board.has_died(0)); }).join();
}

// For the kernel a thread that ends is as good as a process.
TEST(Board, CallsAThreadThatEndedWithoutLeavingDead) {
  Memory memory(3);
  Board board = *Board::over(memory.bytes(), 3);
  board.initialise();
  std::unique_ptr<RobustFutexList> robust_futexes;
  std::thread([board, &robust_futexes] {
    robust_futexes = std::make_unique<RobustFutexList>();
    for (int slot = 0; slot < 3; ++slot) ASSERT_TRUE(board.take(slot, 1, *robust_futexes).is_ok());
    board.leave(1, *robust_futexes);
  }).join();
  for (int look = 0; look < 2; ++look) {
    EXPECT_TRUE(board.has_died(0)) << "everybody who looks finds it dead";
    EXPECT_FALSE(board.has_died(1));
    EXPECT_TRUE(board.has_died(2));
  }
}

}  // namespace
}  // namespace ccom
