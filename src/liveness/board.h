// SPDX-License-Identifier: Apache-2.0
//
// The memory that the ranks of one host share for failure detection: the abort word, and a slot per rank.
//
//   abort word   0, or 1 + the slot whose error is the communicator's. Set once. Alone in 128 bytes, because every wait
//                loop reads it.
//   departure    the first rank that left in order (departure.h).
//   lost         ranks of any host that were lost and are not yet in the communicator's error (losses.h).
//   stragglers   result of the last straggler poll, written by the leader's liveness thread (straggler_poll.h).
//   elsewhere    what ranks of other hosts do, as of that poll; likewise.
//   watched      until when a tool asks for such polls: the one word that other processes of the user may write.
//   slot         the rank's robust futex, held by its process's liveness thread; identity; heartbeats; whether it asks
//                for a straggler poll; what it does and did (observe/activity_record.h); what it says in a round of
//                agreement (consensus.h); its own error record.
//
// A rank writes its error into its own slot and then sets the abort word by compare-and-swap: the first error wins. A
// rank killed in between has published nothing, so no state exists in which others wait for a dead or stopped writer.
//
// A Board is a view and may be copied. Methods may be called from any thread or process unless noted.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/status.h"
#include "base/types.h"
#include "control/error_codec.h"
#include "liveness/consensus.h"
#include "liveness/departure.h"
#include "liveness/message.h"
#include "liveness/robust_futex.h"
#include "observe/activity_record.h"
#include "observe/activity_table.h"
#include "observe/rank_activity.h"
#include "observe/rank_waits.h"
#include "observe/sequence_lock.h"

namespace ccom {

enum class SlotState : uint32_t { Empty = 0, Alive = 1, Left = 2 };

// More are left to the error of the first.
inline constexpr size_t kMostLost = 16;

// What a rank asks of a straggler poll.
enum class PollWish : uint32_t { Nothing = 0, Calls = 1, Places = 2 };  // the calls begun; and where all ranks are

struct alignas(64) BoardHeader {
  std::atomic<uint32_t> ready;  // kBoardReady once the leader has initialised the board
  std::byte before[124];
  std::atomic<uint32_t> abort_word;
  std::byte after[124];
  std::atomic<uint64_t> departure;  // to_word(); the greatest counts
  // Histories of departures, each above the lower 48 bits of its word; the word says at which place.
  std::array<std::atomic<uint64_t>, 3> departure_histories;
  SequenceLock straggler_lock;
  std::atomic<uint64_t> straggler_calls;
  std::atomic<uint32_t> straggler_count;
  std::array<std::atomic<Rank>, StragglerReport::kMost> straggler_ranks;
  std::array<std::atomic<Rank>, kMostLost> lost;  // each plus 1; 0: none; from the front
  std::atomic<uint64_t> watched_until_ns;         // CLOCK_MONOTONIC
  struct alignas(64) Elsewhere {
    SequenceLock lock;
    std::atomic<uint64_t> at_ns, size_bytes;
    std::array<std::atomic<uint64_t>, kMostTableBytes / 8> words;  // of encode_table()
  };
  Elsewhere elsewhere;
};
static_assert(sizeof(BoardHeader) == 512 + 64 + kMostTableBytes);

struct alignas(64) BoardSlot {
  RobustFutex robust_futex;
  std::atomic<uint32_t> state;
  std::atomic<int32_t> pid;             // for error texts; differs between containers
  std::atomic<uint64_t> process;        // random; equal for ranks of one process, and only for those
  std::atomic<uint64_t> pid_namespace;  // where pid and the futex's holder are known; 0: nowhere
  std::atomic<uint64_t> beats;          // increases while the process runs
  std::atomic<uint32_t> asks;           // PollWish
  std::atomic<int32_t> rank;            // plus 1; for readers in other processes
  std::atomic<uint64_t> rounds;         // of agreement, that the rank has begun
  std::atomic<uint32_t> history;        // of a rank that has left in order: Departure's
  ActivityRecord activity;
  ConsensusSlot consensus;
  uint32_t error_bytes;  // written by the owner before it sets the abort word; constant afterwards
  std::byte error[kMaxErrorBytes];
};

class Board {
 public:
  static size_t bytes(int slots);

  // `memory` must be 64-byte aligned, zeroed when new, and at least bytes(slots) long.
  static Result<Board> over(Bytes memory, int slots);
  // Called by one rank before any other uses the board.
  void initialise();
  bool is_ready() const;

  int slots() const { return slots_; }
  BoardSlot& slot(int index) const {
    CCOM_ASSERT(index >= 0 && index < slots_);
    return first_[index];
  }
  const std::atomic<uint32_t>& abort_word() const { return header_->abort_word; }

  // Claims the slot for this process and holds its robust futex until leave().
  Status take(int slot, uint64_t process, RobustFutexList& robust_futexes) const;
  // The rank makes no more calls: it has left in order, after those that it has begun. history: Departure's.
  void depart(int slot, Rank rank, uint16_t history) const;
  // Gives the slot up.
  void leave(int slot, RobustFutexList& robust_futexes) const;

  // Whether the rank has died without leaving. Costs two loads.
  bool has_died(int slot) const;

  // Makes `error` the communicator's error unless there is one; returns whether it did. At most one thread at a time
  // per slot. Wakes all waiters on the abort word.
  bool publish(int slot, const Status& error) const;
  // A rank of any host has left in order, and after fewer calls than those known before. Returns whether that is new.
  bool note_departure(const Departure& departure) const;
  std::optional<Departure> first_departure() const;
  bool has_left(int slot) const;
  // After which calls the rank of the slot has left in order; nothing if it has not.
  std::optional<Departure> departure_of(int slot, Rank rank) const;
  // A rank of any host was lost. Returns whether that is new.
  bool note_lost(Rank rank) const;
  std::vector<Rank> lost() const;
  // Whether the board says anything that other hosts may not know: deaths, more lost ranks than `lost`, another
  // departure, or that a rank asks for a straggler poll. Reads a line or two of each slot.
  bool has_news(size_t lost, const std::optional<Departure>& departure) const;

  // What ranks, or tools, ask of a straggler poll; and this host's contribution to it.
  PollWish poll_wish(int64_t now_ns) const;
  StragglerReport straggler_report(const std::vector<Rank>& ranks) const;
  // Called by one thread only.
  void publish_stragglers(const StragglerReport& found) const;
  StragglerReport stragglers() const;
  // Likewise: what the ranks of other hosts do.
  void publish_elsewhere(const ActivityTable& table, int64_t now_ns) const;
  // The same, of ranks below `ranks`, with call sites as they were written (source_line.h); nothing if there was no
  // poll in the last 1.5 s. A rank whose host has not answered since is as it was then, with its times until now.
  std::vector<RankActivity> activities_elsewhere(Rank ranks, int64_t now_ns) const;
  // When that was told last, whatever it was; 0: never.
  int64_t told_elsewhere_ns() const;
  // The communicator's error, or Ok.
  Status error() const;

  // What the rank in each slot does now, with call sites as they were written. ranks: by slot.
  std::vector<RankActivity> activities(const std::vector<Rank>& ranks) const;
  // For whom they have waited since the start, `seconds` ago.
  std::vector<RankWaits> waits(const std::vector<Rank>& ranks, double seconds, bool reads_files) const;
  // Asks all ranks where they are outside of calls, wakes their liveness threads, and waits until all have said so, or
  // goes_on() is false, or the time is up.
  void ask_places(std::chrono::milliseconds at_most, const std::function<bool()>& goes_on) const;
  // Without waiting for answers.
  std::vector<std::pair<int, uint32_t>> ask_places() const;

 private:
  std::atomic<uint64_t>& history_of_departure(uint64_t word) const;
  Board(BoardHeader* header, BoardSlot* first, int slots) : header_(header), first_(first), slots_(slots) {}
  BoardHeader* header_;
  BoardSlot* first_;
  int slots_;
};

// For tools of the same user: asks all hosts of the communicator what their ranks do, from now on until `until_ns` of
// CLOCK_MONOTONIC, of which at most kLongestWatchNs count. board: the first kBytesToAsk of a board, mapped for writing;
// nothing else of them is written. Answers are in activities_elsewhere() within about 150 ms. False if it is no board
// of this version of ccom. Without effect on a single host.
inline constexpr int64_t kLongestWatchNs = 10'000'000'000;
inline constexpr size_t kBytesToAsk = 512;
bool ask_all_hosts(Bytes board, int64_t until_ns);

}  // namespace ccom
