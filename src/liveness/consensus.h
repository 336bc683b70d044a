// SPDX-License-Identifier: Apache-2.0
//
// Agreement among the ranks of a host that still live: who takes part in a round, and what all of them say.
//
// Each rank has a word in shared memory for the round. It is settled once, by compare-and-swap: to In by the rank
// itself when it comes, to Out by anybody who knows that the rank is lost, or to Late by anybody whose time is over.
// When all words are settled, everybody reads the same outcome there. So
//   - all who get an outcome get the same one, whatever they believed about each other and whoever dies at whichever
//     point: a wrong belief puts a rank Out, which then learns that, but nobody disagrees about it;
//   - nobody waits for a rank that is known to be lost;
//   - no rank decides for others, so there is none whose death has to be survived.
// What a rank says is written before its word and stays until the next round but one. To begin that one, all must have
// settled the one between, for which every rank of this round has read this one, or has been put Out in the meantime;
// it looks for that after it has read.
//
// n words are read in a round, 2 + (lost ranks) are written by a rank. Lock-free; a rank may die between any two steps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/types.h"

namespace ccom {

// What a rank brings to a round. A value.
struct ConsensusTerms {
  static constexpr size_t kWords = 16;
  uint64_t call = 0;                       // what it is for: equal on all ranks, or the outcome is a mismatch
  uint64_t flags = 0;                      // combined by a bitwise and
  std::array<uint64_t, kWords> payload{};  // that of the first rank that is In reaches all
  friend bool operator==(const ConsensusTerms&, const ConsensusTerms&) = default;
};

// A rank's, in shared memory; all zero before its first round.
struct ConsensusSlot {
  struct Entry {
    std::atomic<uint64_t> word;  // round << 2 | state
    std::atomic<uint64_t> call, flags;
    std::array<std::atomic<uint64_t>, ConsensusTerms::kWords> payload;
  };
  std::array<Entry, 2> entries;  // by the parity of the round
};

struct ConsensusOutcome {
  std::vector<int> in, out, late;  // slots, ascending
  uint64_t flags = 0;
  std::array<uint64_t, ConsensusTerms::kWords> payload{};
  std::optional<int> different;  // the first that is In with another call than the first of all
  bool is_self_out = false;      // the others go on without this rank; nothing else is known then
};

// One rank's way through a round, by steps that never block: pure but for the shared words. For one thread.
class ConsensusRound {
 public:
  struct Views {
    std::function<bool(int slot)> is_lost;  // asked of those only that have not come
    std::function<bool()> is_over;          // the time that this rank waits for others
  };
  enum class Progress : uint8_t { Going, Waiting, Done };

  // round: 1, 2, ..., the same sequence on all ranks.
  ConsensusRound(std::vector<ConsensusSlot*> slots, int self, uint64_t round, const ConsensusTerms& mine)
      : slots_(std::move(slots)), self_(self), round_(round), mine_(mine) {}

  // Waiting: for awaited(). After Done: outcome().
  Progress step(const Views& views);
  int awaited() const { return static_cast<int>(next_); }
  const ConsensusOutcome& outcome() const { return outcome_; }

 private:
  enum class State : uint64_t { NotYet = 0, In = 1, Out = 2, Late = 3 };
  enum class Phase : uint8_t { Say, Enter, Settle, Read, Check, Done };

  ConsensusSlot::Entry& entry(size_t slot) const { return slots_[slot]->entries[round_ % 2]; }
  uint64_t word_of(State state) const { return round_ << 2 | static_cast<uint64_t>(state); }
  void say();
  void enter();
  Progress settle(const Views& views);
  void read();
  void check();
  void leave_out();

  const std::vector<ConsensusSlot*> slots_;
  const int self_;
  const uint64_t round_;
  const ConsensusTerms mine_;
  Phase phase_ = Phase::Say;
  size_t next_ = 0;  // in Settle: of all slots; in Read: of those that are In
  uint64_t first_call_ = 0;
  ConsensusOutcome outcome_;
};

}  // namespace ccom
