// SPDX-License-Identifier: Apache-2.0
//
// The region that the ranks of one host share: the abort word, and a slot per rank.
//
//   abort word   0, or 1 + the slot whose error is the communicator's. Changes once. Has 128 bytes to itself, for it is
//                read in every wait loop.
//   behind       what the last straggler poll found, written by the leader's liveness thread (straggler_poll.h).
//   slot         the rank's life line, held by its process's liveness thread; who and what the rank is; its beats; how
//                many calls it has begun and whether its time is up; and its own error record.
//
// A rank writes its error into its own slot and then tries to set the abort word: first come, first kept. Whoever is
// killed half-way has claimed nothing, so there is no state in which the others would wait for a dead or stopped
// writer.
//
// A Board is a view and copies freely. Methods may be called from any thread or process, but for those that say
// otherwise.
#pragma once

#include <array>
#include <atomic>

#include "base/status.h"
#include "base/types.h"
#include "liveness/life_line.h"
#include "liveness/message.h"

namespace ccom {

enum class SlotState : uint32_t { Empty = 0, Alive = 1, Left = 2 };

struct alignas(64) BoardHeader {
  std::atomic<uint32_t> ready;  // kBoardReady once the leader has initialised the board
  std::byte before[124];
  std::atomic<uint32_t> abort_word;
  std::byte after[124];
  std::atomic<uint64_t> behind_version;  // odd while being written
  std::atomic<uint64_t> behind_calls;
  std::atomic<uint32_t> behind_count;
  std::array<std::atomic<Rank>, StragglerReport::kMost> behind_ranks;
};
static_assert(sizeof(BoardHeader) == 448);

struct alignas(64) BoardSlot {
  LifeLine life;
  std::atomic<uint32_t> state;
  std::atomic<int32_t> pid;       // for texts; differs between containers
  std::atomic<uint64_t> process;  // random: equal exactly for ranks of one process
  std::atomic<uint64_t> beats;    // grows as long as the process runs
  std::atomic<uint64_t> calls;    // begun by the rank
  std::atomic<uint32_t> overdue;  // 1: it asks for a straggler poll
  uint32_t error_bytes;           // written by the owner before it sets the abort word, then never again
  std::byte error[kMaxErrorBytes];
};

class Board {
 public:
  static size_t bytes(int slots);

  // `memory` is 64-byte aligned, zeroed when new, and at least bytes(slots) long.
  static Result<Board> over(Bytes memory, int slots);
  // By one rank, before any other uses the board.
  void initialise();
  bool is_ready() const;

  int slots() const { return slots_; }
  BoardSlot& slot(int index) const { return first_[index]; }
  const std::atomic<uint32_t>& abort_word() const { return header_->abort_word; }

  // Takes the slot for this process and holds its life line until leave().
  Status take(int slot, uint64_t process, LifeLines& lines) const;
  void leave(int slot, LifeLines& lines) const;

  // Whether the rank has died without leaving. Two loads.
  bool has_died(int slot) const;

  // Makes `error` the communicator's unless there is one; true if it did. One thread at a time per slot. Wakes those
  // who wait on the abort word.
  bool publish(int slot, const Status& error) const;
  // Whether a rank asks for a straggler poll; and what this host has to say in it.
  bool is_overdue() const;
  StragglerReport furthest_behind(const std::vector<Rank>& ranks) const;
  // By one thread.
  void put_behind(const StragglerReport& found) const;
  StragglerReport behind() const;
  // The communicator's error, or Ok.
  Status error() const;

 private:
  Board(BoardHeader* header, BoardSlot* first, int slots) : header_(header), first_(first), slots_(slots) {}
  BoardHeader* header_;
  BoardSlot* first_;
  int slots_;
};

}  // namespace ccom
