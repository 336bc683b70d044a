// SPDX-License-Identifier: Apache-2.0
//
// Agreement among the ranks of a host (consensus.h): the production state machine in random schedules, one step of one
// rank at a time. Ranks die between any two steps, are taken for lost by some and not by others, come late or never.
// Promises: all who get the outcome of a round get the same one; nobody waits for ever; who is In is a rank that has
// come; what is said reaches all.
//
// CCOM_TEST_SEEDS=N runs N seeds (CCOM_TEST_LONG=1: a million). CCOM_TEST_SEED=S begins with S.
#include "liveness/consensus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "tests/harness/effort.h"

namespace ccom {
namespace {

constexpr uint64_t kRounds = 5;

struct Rank_ {
  bool is_dead = false, is_out = false, has_given_up = false;
  uint64_t round = 1;
  int idle = 0;  // steps without progress in this round
  std::unique_ptr<ConsensusRound> machine;
};

bool operator==(const ConsensusOutcome& a, const ConsensusOutcome& b) {
  return a.in == b.in && a.out == b.out && a.late == b.late && a.flags == b.flags && a.payload == b.payload &&
         a.different == b.different;
}

// A host whose ranks go through kRounds rounds. `plants`: a rank overwrites the word of another one, which no rank
// does.
class World {
 public:
  World(uint64_t seed, bool plants)
      : random_(seed), plants_(plants), memory_(2 + random_() % 7), ranks_(memory_.size()) {
    slots_.reserve(memory_.size());
    for (ConsensusSlot& slot : memory_) slots_.push_back(&slot);
    deaths_ = random_() % 4;
    doubts_ = random_() % 3 == 0;   // living ranks are taken for lost
    is_lazy_ = random_() % 8 == 0;  // a rank stops coming at some time
    differs_at_ = random_() % 10 == 0 ? 1 + random_() % kRounds : 0;
  }

  // Empty, or which promise was broken.
  std::string run() {
    for (int steps = 0; steps < 20000; ++steps) {
      std::vector<size_t> going;
      for (size_t rank = 0; rank < ranks_.size(); ++rank)
        if (is_going(ranks_[rank])) going.push_back(rank);
      if (going.empty()) return broken_;
      step(going[random_() % going.size()]);
      disturb();
      if (!broken_.empty()) return broken_;
    }
    return "a rank waits for ever";
  }
  int outs() const { return outs_; }
  int lates() const { return lates_; }
  int losses() const { return losses_; }

 private:
  static bool is_going(const Rank_& rank) {
    return !rank.is_dead && !rank.is_out && !rank.has_given_up && rank.round <= kRounds;
  }

  ConsensusTerms terms(size_t rank, uint64_t round) const {
    ConsensusTerms said{.call = round, .flags = ~(uint64_t{1} << rank), .payload = {}};
    said.payload.fill(round * 100 + rank);
    if (rank == 1 && round == differs_at_) said.call = 99;
    return said;
  }

  void step(size_t self) {
    Rank_& rank = ranks_[self];
    if (rank.machine == nullptr) {
      if (is_lazy_ && self == 0 && random_() % 3 == 0) {
        rank.has_given_up = true;
        return;
      }
      rank.machine =
          std::make_unique<ConsensusRound>(slots_, static_cast<int>(self), rank.round, terms(self, rank.round));
    }
    const auto progress =
        rank.machine->step({.is_lost = [&](int slot) { return seems_lost(static_cast<size_t>(slot)); },
                            .is_over = [&] { return rank.idle > 200; }});
    rank.idle = progress == ConsensusRound::Progress::Waiting ? rank.idle + 1 : rank.idle;
    if (progress == ConsensusRound::Progress::Done) finish(self);
  }

  bool seems_lost(size_t slot) {
    if (ranks_[slot].is_dead) return random_() % 4 != 0;  // it is noticed sooner or later
    return doubts_ && random_() % 50 == 0;
  }

  void finish(size_t self) {
    Rank_& rank = ranks_[self];
    const ConsensusOutcome outcome = rank.machine->outcome();
    rank.machine.reset();
    rank.idle = 0;
    if (outcome.is_self_out) {
      rank.is_out = true;
      ++outs_;
      if (!doubts_ && !has_missed_) broken_ = "a rank is put out that nobody has doubted";
      return;
    }
    check(self, rank.round, outcome);
    lates_ += outcome.late.empty() ? 0 : 1;
    has_missed_ |= !outcome.late.empty();
    losses_ += static_cast<int>(outcome.out.size());
    ++rank.round;
  }

  void check(size_t self, uint64_t round, const ConsensusOutcome& outcome) {
    const auto [known, is_first] = outcomes_.try_emplace(round, outcome);
    if (!is_first && !(known->second == outcome)) broken_ = "two ranks disagree about round " + std::to_string(round);
    if (outcome.late.empty() && std::ranges::count(outcome.in, static_cast<int>(self)) == 0)
      broken_ = "a rank is not in its own round";
    if (outcome.in.size() + outcome.out.size() + outcome.late.size() != ranks_.size()) broken_ = "a rank is missing";
    if (outcome.in.empty()) return;
    uint64_t flags = ~uint64_t{0};
    std::optional<int> different;
    const uint64_t call = terms(static_cast<size_t>(outcome.in[0]), round).call;
    for (const int slot : outcome.in) {
      const ConsensusTerms said = terms(static_cast<size_t>(slot), round);
      flags &= said.flags;
      if (said.call != call && !different) different = slot;
    }
    if (outcome.flags != flags) broken_ = "the flags are not those of the ranks that are in";
    if (outcome.payload != terms(static_cast<size_t>(outcome.in[0]), round).payload) broken_ = "another payload";
    if (outcome.different != different) broken_ = "a mismatch is not found, or found where there is none";
  }

  void disturb() {
    if (deaths_ > 0 && random_() % 60 == 0) {
      ranks_[random_() % ranks_.size()].is_dead = true;
      --deaths_;
    }
    if (!plants_ || random_() % 40 != 0) return;
    const uint64_t round = 1 + random_() % kRounds;
    memory_[random_() % memory_.size()].entries[round % 2].word.store(round << 2 | (1 + random_() % 2));
  }

  std::mt19937_64 random_;
  const bool plants_;
  std::vector<ConsensusSlot> memory_;
  std::vector<Rank_> ranks_;
  std::vector<ConsensusSlot*> slots_;
  uint64_t deaths_ = 0, differs_at_ = 0;
  bool doubts_ = false, is_lazy_ = false, has_missed_ = false;
  std::map<uint64_t, ConsensusOutcome> outcomes_;
  std::string broken_;
  int outs_ = 0, lates_ = 0, losses_ = 0;
};

TEST(Consensus, HoldsInEverySchedule) {
  const uint64_t first = test_seed();
  const uint64_t count = count_from("CCOM_TEST_SEEDS", 20'000, 1'000'000);
  int outs = 0, lates = 0, losses = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    World world(seed, false);
    ASSERT_EQ(world.run(), "") << "CCOM_TEST_SEED=" << seed << " CCOM_TEST_SEEDS=1 repeats it";
    outs += world.outs();
    lates += world.lates();
    losses += world.losses();
  }
  if (count < 1000) return;
  EXPECT_GT(outs, 100);
  EXPECT_GT(lates, 100);
  EXPECT_GT(losses, 1000);
}

TEST(Consensus, ThatIsBrokenIsNoticed) {
  int broken = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) broken += World(seed, true).run().empty() ? 0 : 1;
  EXPECT_GT(broken, 100);
}

}  // namespace
}  // namespace ccom
