// SPDX-License-Identifier: Apache-2.0
//
// Agreement between hosts (agreement.h): the production state machine in random schedules. Ranks die between any two
// messages, some of what they have sent arrives; connections come late; the network is divided for a while, or living
// ranks are taken for silent, or, before they listen, for dead; ranks are excluded, come late, or never, and leave when
// they have the last outcome.
// Promises: all living ranks that get the outcome of a round get the same one; nobody waits for ever once the network
// is whole; who is In has come; what is said reaches all.
//
// CCOM_TEST_SEEDS=N runs N seeds (CCOM_TEST_LONG=1: a million). CCOM_TEST_SEED=S begins with S.
#include "liveness/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "tests/harness/effort.h"

namespace ccom {
namespace {

constexpr uint64_t kLastRound = 4;
constexpr int kDisturbed = 1500, kMost = 30000;  // steps

class Schedule {
 public:
  // plants: ranks that listen and answer are taken for dead.
  Schedule(uint64_t seed, bool plants) : random_(seed), plants_(plants), ranks_(2 + random_() % 6) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      ranks_[rank].machine = std::make_unique<AgreementState>(static_cast<Rank>(rank), static_cast<int>(ranks_.size()));
    deaths_ = random_() % 4;
    divides_ = random_() % 3 == 0;
    doubts_ = random_() % 3 == 0;
    is_healthy_ = deaths_ == 0 && !divides_ && !doubts_;
    refuses_ = deaths_ > 0 && !divides_ &&
               !doubts_;  // who refuses connections counts as ended: not to be told from silence, too
    is_lazy_ = random_() % 8 == 0;
    leaves_ = random_() % 2 == 0;
    excludes_ = random_() % 6 == 0;
    differs_at_ = random_() % 10 == 0 ? 1 + random_() % kLastRound : 0;
  }

  // Empty, or which promise was broken.
  std::string run() {
    for (; steps_ < kMost && broken_.empty(); ++steps_) {
      if (std::ranges::none_of(ranks_, [](const Member& rank) { return rank.is_going(); })) return check_outcomes();
      disturb();
      act(random_() % ranks_.size());
      transport();
    }
    return broken_.empty() ? "a rank waits for ever" : broken_;
  }
  int outs() const { return outs_; }
  int lates() const { return lates_; }
  int losses() const { return losses_; }
  int stuck() const { return stuck_; }

 private:
  struct Member {
    bool is_dead = false, has_left = false, is_out = false, has_stopped = false, has_begun = false, listens = false,
         is_over = false;
    uint64_t round = 1;
    int waits = 0;
    std::unique_ptr<AgreementState> machine;
    std::map<uint64_t, ConsensusOutcome> outcomes;
    bool is_going() const { return !is_dead && !is_out && !has_stopped && round <= kLastRound; }
  };
  using Pair = std::pair<size_t, size_t>;
  static Pair pair_of(size_t a, size_t b) { return std::minmax(a, b); }
  bool is_whole() const { return steps_ > kDisturbed; }
  bool is_cut(size_t a, size_t b) const { return is_divided_ && side_[a] != side_[b]; }

  ConsensusTerms terms(size_t rank, uint64_t round) const {
    ConsensusTerms said{.call = round, .flags = ~(uint64_t{1} << rank), .payload = {}};
    said.payload.fill(round * 100 + rank);
    if (rank == 1 && round == differs_at_) said.call = 99;
    return said;
  }
  std::vector<Rank> excluded() const { return excludes_ ? std::vector<Rank>{0} : std::vector<Rank>(); }

  // What a rank's program does.
  void act(size_t self) {
    Member& rank = ranks_[self];
    if (rank.is_dead || rank.has_left) return;
    if (rank.round > kLastRound && leaves_ && random_() % 30 == 0) {
      rank.has_left = true;
      return;
    }
    rank.listens |= random_() % 20 == 0 || is_whole();
    if (random_() % 30 == 0) apply(self, [&](auto& out) { rank.machine->probe(out); });
    if (!rank.is_going()) return;
    if (!rank.has_begun) {
      if (random_() % 10 != 0) return;
      rank.has_stopped = is_lazy_ && self == ranks_.size() - 1 && random_() % 3 == 0;
      if (rank.has_stopped) return;
      rank.has_begun = rank.listens = true;
      rank.waits = 0;
      rank.is_over = false;
      apply(self, [&](auto& out) { rank.machine->begin(rank.round, terms(self, rank.round), excluded(), out); });
    }
    if (const auto outcome = rank.machine->outcome()) return finish(self, *outcome);
    ++rank.waits;
    if (rank.waits > 100 && !rank.is_over) {
      rank.is_over = true;
      apply(self, [&](auto& out) { rank.machine->end_wait(out); });
    }
    const bool is_hopeless = rank.waits > 160 && !is_whole();  // without a majority
    if (is_hopeless && rank.is_over && divides_) {
      apply(self, [&](auto& out) { rank.machine->give_up(out); });
      ++stuck_;
      rank.has_begun = false;
      ++rank.round;
    }
  }

  void finish(size_t self, const ConsensusOutcome& outcome) {
    Member& rank = ranks_[self];
    rank.has_begun = false;
    if (outcome.is_self_out) {
      rank.is_out = true;
      ++outs_;
      return;
    }
    rank.outcomes[rank.round++] = outcome;
    lates_ += outcome.late.empty() ? 0 : 1;
    losses_ += static_cast<int>(outcome.out.size());
  }

  template <typename Fn>
  void apply(size_t self, Fn fn) {
    AgreementState::Outputs out;
    fn(out);
    for (const auto& [to, message] : out) {
      for (size_t other = 0; other < ranks_.size(); ++other) {
        if (other == self || (to != AgreementState::kAll && static_cast<size_t>(to) != other)) continue;
        if (links_.contains(pair_of(self, other))) {
          sent_[{self, other}].push_back(message);
        } else if (to != AgreementState::kAll) {
          wanted_.insert({self, other});
        }
      }
    }
  }

  // Delivers a message, or makes a connection, or lets a rank know of an end.
  void transport() {
    const size_t self = random_() % ranks_.size(), other = random_() % ranks_.size();
    if (self == other || ranks_[self].is_dead) return;
    AgreementState& machine = *ranks_[self].machine;
    const auto from = static_cast<Rank>(other);
    if (ranks_[self].has_left) return;
    if (is_cut(self, other)) {
      if (random_() % 20 == 0) apply(self, [&](auto& out) { machine.see(from, PeerView::Silent, out); });
      return;
    }
    std::deque<AgreementMessage>& queue = sent_[{other, self}];
    if (!queue.empty()) {
      const AgreementMessage message = queue.front();
      queue.pop_front();
      apply(self, [&](auto& out) {
        machine.see(from, PeerView::Fine, out);
        machine.receive(from, message, out);
      });
      return;
    }
    const bool is_linked = links_.contains(pair_of(self, other)), wants = wanted_.contains({self, other});
    if (ranks_[other].has_left) {
      if (random_() % 10 == 0) apply(self, [&](auto& out) { machine.see_left(from, ranks_[other].round - 1, out); });
      return;
    }
    if (ranks_[other].is_dead) {
      if (is_linked || wants || random_() % 10 == 0)
        apply(self, [&](auto& out) { machine.see(from, PeerView::Dead, out); });
      return;
    }
    const bool seems_lost = machine.view(from) == PeerView::Silent || machine.view(from) == PeerView::Absent;
    if (seems_lost && (is_linked || ranks_[other].listens))
      apply(self, [&](auto& out) { machine.see(from, PeerView::Fine, out); });
    if (is_linked || !wants) return;
    if (!ranks_[other].listens) {
      if (is_healthy_ && random_() % 40 == 0) apply(self, [&](auto& out) { machine.see(from, PeerView::Absent, out); });
      if (refuses_ && random_() % 40 == 0) apply(self, [&](auto& out) { machine.see(from, PeerView::Dead, out); });
      return;
    }
    links_.insert(pair_of(self, other));
    wanted_.erase({self, other});
    apply(self, [&](auto& out) { machine.attach(from, out); });
    apply(other, [&](auto& out) { ranks_[other].machine->attach(static_cast<Rank>(self), out); });
  }

  void disturb() {
    if (is_whole()) {
      is_divided_ = false;
      return;
    }
    if (deaths_ > 0 && random_() % 150 == 0) {
      const size_t who = random_() % ranks_.size();
      ranks_[who].is_dead = true;
      --deaths_;
      for (size_t other = 0; other < ranks_.size(); ++other) {  // of what it has sent, the end may be lost
        auto& queue = sent_[{who, other}];
        while (!queue.empty() && random_() % 2 == 0) queue.pop_back();
      }
    }
    if ((doubts_ || plants_) && random_() % 100 == 0) {
      const size_t self = random_() % ranks_.size(), other = random_() % ranks_.size();
      const PeerView view = plants_ ? PeerView::Dead : PeerView::Silent;
      if (self != other && !ranks_[self].is_dead)
        apply(self, [&](auto& out) { ranks_[self].machine->see(static_cast<Rank>(other), view, out); });
    }
    if (!divides_ || random_() % 200 != 0) return;
    is_divided_ = !is_divided_;
    side_.assign(ranks_.size(), false);
    for (size_t rank = 0; rank < ranks_.size(); ++rank) side_[rank] = random_() % 2 == 0;
  }

  std::string check_outcomes() const {
    std::map<uint64_t, ConsensusOutcome> known;
    for (size_t self = 0; self < ranks_.size(); ++self) {
      if (ranks_[self].is_dead) continue;
      for (const auto& [round, outcome] : ranks_[self].outcomes) {
        const auto [first, is_first] = known.try_emplace(round, outcome);
        if (!is_first && !same(first->second, outcome))
          return "two ranks disagree about round " + std::to_string(round);
        if (const std::string wrong = check(self, round, outcome); !wrong.empty()) return wrong;
      }
    }
    return "";
  }

  static bool same(const ConsensusOutcome& a, const ConsensusOutcome& b) {
    return a.in == b.in && a.out == b.out && a.late == b.late && a.flags == b.flags && a.payload == b.payload &&
           a.different == b.different;
  }

  std::string check(size_t self, uint64_t round, const ConsensusOutcome& outcome) const {
    if (outcome.late.empty() && std::ranges::count(outcome.in, static_cast<int>(self)) == 0)
      return "a rank is not in its own round";
    if (outcome.in.size() + outcome.out.size() + outcome.late.size() != ranks_.size()) return "a rank is missing";
    if (outcome.in.empty()) return "nobody is in";
    uint64_t flags = ~uint64_t{0};
    std::optional<int> different;
    for (const int rank : outcome.in) {
      const ConsensusTerms said = terms(static_cast<size_t>(rank), round);
      flags &= said.flags;
      if (said.call != terms(static_cast<size_t>(outcome.in[0]), round).call && !different) different = rank;
      if (ranks_[static_cast<size_t>(rank)].round < round) return "a rank is in that has not come";
    }
    if (outcome.flags != flags) return "the flags are not those of the ranks that are in";
    if (outcome.payload != terms(static_cast<size_t>(outcome.in[0]), round).payload) return "another payload";
    if (outcome.different != different) return "a mismatch is not found, or found where there is none";
    if (excludes_ && std::ranges::count(outcome.out, 0) == 0) return "an excluded rank is in";
    return "";
  }

  std::mt19937_64 random_;
  const bool plants_;
  std::vector<Member> ranks_;
  uint64_t deaths_ = 0, differs_at_ = 0;
  bool divides_ = false, doubts_ = false, refuses_ = false, is_healthy_ = false, is_lazy_ = false, leaves_ = false,
       excludes_ = false;
  int steps_ = 0;
  bool is_divided_ = false;
  std::vector<bool> side_;
  std::set<Pair> links_, wanted_;                      // wanted: by whom, to whom
  std::map<Pair, std::deque<AgreementMessage>> sent_;  // from, to
  std::string broken_;
  int outs_ = 0, lates_ = 0, losses_ = 0, stuck_ = 0;
};

TEST(Agreement, HoldsInEverySchedule) {
  const uint64_t first = test_seed();
  const uint64_t count = count_from("CCOM_TEST_SEEDS", 3'000, 1'000'000);
  int outs = 0, lates = 0, losses = 0, stuck = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Schedule world(seed, false);
    ASSERT_EQ(world.run(), "") << "CCOM_TEST_SEED=" << seed << " CCOM_TEST_SEEDS=1 repeats it";
    outs += world.outs();
    lates += world.lates();
    losses += world.losses();
    stuck += world.stuck();
  }
  if (count < 1000) return;
  EXPECT_GT(outs, 50);
  EXPECT_GT(lates, 50);
  EXPECT_GT(losses, 500);
  EXPECT_GT(stuck, 10);
}

TEST(Agreement, ThatTakesTheLivingForDeadIsNoticed) {
  bool is_noticed = false;
  for (uint64_t seed = 1; seed <= 20000 && !is_noticed; ++seed)
    is_noticed = Schedule(seed, true).run().starts_with("two ranks disagree");
  EXPECT_TRUE(is_noticed);
}

TEST(Agreement, MessagesAreTheSameAfterTheWire) {
  AgreementMessage message{.kind = AgreementMessage::Kind::Report,
                           .has_come = true,
                           .is_over = false,
                           .has_given_up = true,
                           .round = 7,
                           .ballot = 12,
                           .terms = {.call = 3, .flags = 5, .payload = {9}},
                           .accepted_ballot = 4,
                           .value = {{RankPart::In, RankPart::Late}, 8, {1, 2}, 1},
                           .views = {PeerView::Excluded, PeerView::Silent}};
  std::vector<std::byte> bytes = encode_agreement(message);
  EXPECT_EQ(decode_agreement(bytes), message);
  bytes.back() = std::byte{6};
  EXPECT_EQ(decode_agreement(bytes), std::nullopt);
  bytes.pop_back();
  EXPECT_EQ(decode_agreement(bytes), std::nullopt);
  EXPECT_EQ(decode_agreement({}), std::nullopt);
}

// U19: the smaller part of a divided network waited 26 seconds with a timeout of 5, though it knew who was silent.
TEST(Agreement, AMinorityKnowsThatNobodyElseWillAnswer) {
  AgreementState::Outputs out;
  AgreementState alone(2, 3);
  alone.begin(1, {}, {}, out);
  alone.see(0, PeerView::Silent, out);
  EXPECT_FALSE(alone.is_cut_off()) << "rank 1 may answer";
  alone.see(1, PeerView::Absent, out);
  EXPECT_FALSE(alone.is_cut_off()) << "it may connect";
  alone.see(1, PeerView::Silent, out);
  EXPECT_TRUE(alone.is_cut_off());
  AgreementState with_another(1, 3);
  with_another.begin(1, {}, {}, out);
  with_another.see(2, PeerView::Silent, out);
  EXPECT_FALSE(with_another.is_cut_off()) << "rank 0, which decides, is heard";
}

}  // namespace
}  // namespace ccom
