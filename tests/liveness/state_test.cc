// SPDX-License-Identifier: Apache-2.0
//
// The control tree's state machine in virtual time, one fault after the other: every survivor gets an error that names
// a dead rank, in bounded time, one failure is named alike everywhere, and pauses and orderly leaving are no deaths.
// simulation_test.cc has random mixtures of faults.
#include "liveness/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tree_network.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TreeOutput> sends_to(const TreeOutputs& outputs, int host) {
  std::vector<TreeOutput> found;
  for (const TreeOutput& output : outputs)
    if (output.kind == TreeOutput::Kind::Send && output.host == host) found.push_back(output);
  return found;
}

const TreeOutput* report_in(const TreeOutputs& outputs) {
  const auto found = std::ranges::find(outputs, TreeOutput::Kind::Report, &TreeOutput::kind);
  return found == outputs.end() ? nullptr : &*found;
}

TEST(TreeState, NeighboursAreEachOthersNeighboursAndConnectEverybody) {
  for (int hosts = 1; hosts <= 200; ++hosts) {
    int edges = 0;
    for (int h = 0; h < hosts; ++h)
      for (int other : tree_neighbours(h, hosts)) {
        const auto back = tree_neighbours(other, hosts);
        EXPECT_NE(std::ranges::find(back, h), back.end());
        ++edges;
      }
    EXPECT_EQ(edges, 2 * (hosts - 1));
  }
}

TEST(TreeState, SendsHeartbeatsEveryTwelfthOfTheTime) {
  TreeState state(tree_of(2, 0));
  TreeOutputs out;
  state.attach(1, 0, out);
  int beats = 0;
  for (int64_t now = 0; now < kDeadMs * kMs; now += kMs) {
    state.receive(1, {MessageType::Heartbeat}, now, out);
    out.clear();
    state.tick(now, out);
    beats += static_cast<int>(sends_to(out, 1).size());
  }
  EXPECT_GE(beats, 12);
  EXPECT_LE(beats, 17) << "at three quarters of it at the earliest";
}

TEST(TreeState, SendsHeartbeatsAtTheSameTimesAsOthersOfItsProcess) {
  constexpr int64_t kInterval = 250 * kMs;
  for (const int64_t phase : {int64_t{0}, int64_t{7}, int64_t{123456789}}) {
    const int64_t first = next_beat_ns(1000 * kMs, kInterval, phase);
    EXPECT_GT(first, 1000 * kMs + kInterval * 3 / 4 - 2);
    EXPECT_LE(first, 1000 * kMs + kInterval);
    std::set<int64_t> times;
    for (int64_t now = 1000 * kMs; now < 1500 * kMs; now += kMs) times.insert(next_beat_ns(now, kInterval, phase));
    EXPECT_LE(times.size(), 9u) << "four times in an interval";
  }
}

TEST(TreeState, SuspectsASilentHostFirstThenBlamesAllItsRanks) {
  TreeState state(tree_of(2, 0));
  TreeOutputs out;
  state.attach(1, 0, out);
  int64_t suspected = -1, dead = -1;
  for (int64_t now = 0; now <= 2 * kDeadMs * kMs && dead < 0; now = std::max(now + 1, state.next_tick_ns())) {
    out.clear();
    state.tick(now, out);
    for (const TreeOutput& output : out) {
      if (output.kind == TreeOutput::Kind::Suspect && suspected < 0) suspected = now;
      if (output.kind == TreeOutput::Kind::Report) dead = now;
    }
  }
  EXPECT_EQ(suspected, kDeadMs * kMs / 6);
  EXPECT_EQ(dead, kDeadMs * kMs);
  ASSERT_NE(report_in(out), nullptr);
  const Status& error = report_in(out)->message.error;
  EXPECT_EQ(error.code(), Code::RemoteError);
  EXPECT_THAT(error.peers(), ElementsAre(2, 3));
  EXPECT_EQ(error.host(), "host1");
  EXPECT_THAT(error.message(), HasSubstr("ranks 2 and 3"));
  // Should it wake up, it learns that it is out.
  state.fail(Status(error), out);
  EXPECT_EQ(sends_to(out, 1).back().message.type, MessageType::Error);
}

TEST(TreeState, BlamesOnlyTheMemberWhoseConnectionEnded) {
  TreeState state(tree_of(2, 0));
  TreeOutputs out;
  state.attach(1, 0, out);
  state.lose(1, "connection reset by peer", 1, out);
  ASSERT_NE(report_in(out), nullptr);
  EXPECT_THAT(report_in(out)->message.error.peers(), ElementsAre(2));
  EXPECT_THAT(report_in(out)->message.error.message(), HasSubstr("connection reset by peer"));
}

TEST(TreeState, AGoodbyeBeforeTheEndIsNoDeath) {
  TreeState state(tree_of(2, 0));
  TreeOutputs out;
  state.attach(1, 0, out);
  state.receive(1, {MessageType::Goodbye}, 1, out);
  state.lose(1, "closed by the peer", 1, out);
  for (int64_t now = 0; now < 3 * kDeadMs * kMs; now += kMs) state.tick(now, out);
  EXPECT_EQ(report_in(out), nullptr);
  EXPECT_TRUE(sends_to(out, 1).empty());
}

TEST(TreeState, KeepsTheFirstErrorAndForwardsItOnceToAllOthers) {
  TreeState state(tree_of(20, 1));
  TreeOutputs out;
  for (int other : tree_neighbours(1, 20)) state.attach(other, 0, out);
  const Status first(Code::Aborted, "first"), second(Code::Aborted, "second");
  state.receive(9, {MessageType::Error, first}, 1, out);
  ASSERT_NE(report_in(out), nullptr);
  state.fail(Status(first), out);
  state.receive(10, {MessageType::Error, second}, 1, out);
  state.fail(second, out);
  EXPECT_TRUE(sends_to(out, 9).empty());
  for (int other : tree_neighbours(1, 20)) {
    if (other == 9) continue;
    ASSERT_EQ(sends_to(out, other).size(), 1u);
    EXPECT_EQ(sends_to(out, other)[0].message.error.message(), "first");
  }
}

TEST(TreeState, TellsANeighbourWhoComesLateWhatHasHappened) {
  TreeState state(tree_of(3, 0));
  TreeOutputs out;
  state.attach(1, 0, out);
  state.fail(Status(Code::Aborted, "stop"), out);
  out.clear();
  state.attach(2, 5, out);
  ASSERT_EQ(sends_to(out, 2).size(), 1u);
  EXPECT_EQ(sends_to(out, 2)[0].message.error.message(), "stop");
}

TEST(TreeState, DoesNotBlameOthersForItsOwnPause) {
  TreeState state(tree_of(2, 0));
  TreeOutputs out;
  state.attach(1, 0, out);
  state.tick(0, out);
  state.tick(10 * kDeadMs * kMs, out);  // we stood still; the peer may have, too
  EXPECT_EQ(report_in(out), nullptr);
  state.tick((10 * kDeadMs + kDeadMs / 4) * kMs, out);
  EXPECT_EQ(report_in(out), nullptr);
  // But the excuse holds once.
  state.tick(20 * kDeadMs * kMs, out);
  EXPECT_NE(report_in(out), nullptr);
}

TEST(TreeState, DoesNotBlameOthersForItsOwnPauseBeforeTheFirstTick) {
  TreeState state(tree_of(2, 0));
  TreeOutputs out;
  state.attach(1, 5 * kMs, out);
  state.tick(10 * kDeadMs * kMs, out);
  EXPECT_EQ(report_in(out), nullptr);
}

TEST(TreeNetwork, StaysQuietWhenNothingHappens) {
  for (int hosts : {1, 2, 9, 10, 40}) {
    TreeNetwork network(hosts, 1);
    network.run_ms(10 * kDeadMs);
    EXPECT_EQ(network.suspicions(), 0);
    for (int h = 0; h < hosts; ++h) EXPECT_TRUE(network.error_of(h).is_ok());
  }
}

// Time enough for silence to be noticed and for an error to cross the deepest tree used here.
constexpr int64_t kSettleMs = 2 * kDeadMs + 60;

TEST(TreeNetwork, OneDeathIsNamedAlikeByAllSurvivors) {
  for (int hosts = 2; hosts <= 40; ++hosts)
    for (int victim = 0; victim < hosts; ++victim) {
      TreeNetwork network(hosts, static_cast<uint64_t>(hosts * 100 + victim));
      network.run_ms(30);
      network.kill(victim);
      network.run_ms(60);
      for (int h = 0; h < hosts; ++h) {
        if (h == victim) continue;
        ASSERT_THAT(network.error_of(h).peers(), ElementsAre(2 * victim)) << hosts << " hosts, victim " << victim;
      }
    }
}

// Survivors whom connections still join to host 0 name both victims; others at least the one that cut them off.
TEST(TreeNetwork, TwoDeathsAtOnceAreNamedTogetherByAllWhoAreStillConnected) {
  std::mt19937_64 random(1);
  for (int hosts = 3; hosts <= 40; ++hosts)
    for (int round = 0; round < 20; ++round) {
      const int first = 1 + static_cast<int>(random() % static_cast<uint64_t>(hosts - 1));
      const int second = 1 + static_cast<int>(random() % static_cast<uint64_t>(hosts - 1));
      if (first == second) continue;
      TreeNetwork network(hosts, random(), {}, 30);
      network.run_ms(30);
      network.kill(first);
      network.run_ms(static_cast<int64_t>(random() % 10));
      network.kill(second);
      network.run_ms(200);
      for (int h = 0; h < hosts; ++h) {
        if (h == first || h == second) continue;
        const bool is_joined = tree_parent(h) != first && tree_parent(h) != second;  // at most two levels
        std::vector<Rank> both{2 * std::min(first, second), 2 * std::max(first, second)};
        // Whom only the other victim was joined to is missed by nobody, unless that one has still told it.
        const int upper = tree_parent(second) == first ? first : tree_parent(first) == second ? second : -1;
        if (upper > 0 && is_joined) both = network.error_of(0).peers();
        if (upper > 0) {
          ASSERT_EQ(std::ranges::count(both, 2 * upper), 1);
        }
        const std::vector<Rank>& named = network.error_of(h).peers();
        if (is_joined) {
          ASSERT_EQ(named, both) << "at host " << h << " of " << hosts;
        } else {
          ASSERT_TRUE(std::ranges::includes(both, named) && !named.empty()) << "at host " << h << " of " << hosts;
        }
      }
    }
}

// Host 0 of three, joined with both others.
TreeState settling_root_of_three(TreeOutputs& out) {
  TreeConfig config = tree_of(3, 0);
  config.settle_ns = 5 * kMs;
  TreeState state(config);
  for (const int other : {1, 2}) state.attach(other, 0, out);
  return state;
}

TEST(TreeState, WaitsForOtherLossesAndNamesAllInOneError) {
  TreeOutputs out;
  TreeState state = settling_root_of_three(out);
  state.tick(0, out);
  out.clear();
  state.lose(1, "closed by the peer", kMs, out);
  EXPECT_EQ(sends_to(out, 2).back().message.type, MessageType::Loss);
  EXPECT_EQ(report_in(out), nullptr);
  state.find_lost(Status(Code::RemoteError, "rank 1 on host host0 died").with_peers({1}), 2 * kMs, out);
  EXPECT_EQ(report_in(out), nullptr);
  // The second rank of host 1 has connections of its own: host 0 cannot decide for all in this tree.
  for (int64_t now = 2 * kMs; now < 16 * kMs; now += kMs) state.tick(now, out);
  EXPECT_EQ(report_in(out), nullptr);
  EXPECT_LE(state.next_tick_ns(), 16 * kMs);
  state.tick(16 * kMs, out);
  ASSERT_NE(report_in(out), nullptr);
  EXPECT_THAT(report_in(out)->message.error.peers(), ElementsAre(1, 2));
  EXPECT_THAT(report_in(out)->message.error.message(), HasSubstr("ranks 1 and 2 were lost at once: rank 2 on host"));
  state.fail(Status(report_in(out)->message.error), out);
  EXPECT_FALSE(state.is_settling());
}

TEST(TreeState, SaysHowARankDiedIfThatBecomesKnownAfterItsDeath) {
  TreeOutputs out;
  TreeState state = settling_root_of_three(out);
  const auto lost = [](ErrorKey key, const char* text) { return error(key, "rank 1 %s", text).with_peers({1}); };
  state.find_lost(lost(ErrorKey::RankUnreachable, "died or is unreachable"), kMs, out);
  state.find_lost(lost(ErrorKey::RankDied, "died (pid 7)"), 2 * kMs, out);
  state.find_lost(lost(ErrorKey::RankUnreachable, "died or is unreachable"), 3 * kMs, out);
  EXPECT_THAT(sends_to(out, 2).back().message.error.message(), HasSubstr("pid 7"));
  state.tick(16 * kMs, out);
  ASSERT_NE(report_in(out), nullptr);
  EXPECT_EQ(report_in(out)->message.error.message(), "rank 1 died (pid 7)");
}

// Of two ranks that died at once the connection of one ends later: its silence keeps host 0 from deciding.
TEST(TreeState, TheRootDecidesWhenAllItsNeighboursHaveAnswered) {
  for (const bool answers : {true, false}) {
    TreeConfig config = tree_of(2, 0);
    config.settle_ns = 5 * kMs;
    TreeState state(config);
    TreeOutputs out;
    state.attach(1, 0, out);
    state.find_lost(Status(Code::RemoteError, "rank 1 on host host0 died").with_peers({1}), kMs, out);
    if (answers) state.receive(1, {MessageType::Heartbeat}, 2 * kMs, out);
    state.tick(6 * kMs, out);
    EXPECT_EQ(report_in(out) != nullptr, answers);
    if (!answers) state.lose(1, "closed by the peer", 7 * kMs, out);
    state.tick(16 * kMs, out);
    ASSERT_NE(report_in(out), nullptr);
    EXPECT_EQ(report_in(out)->message.error.peers(), answers ? std::vector{1} : (std::vector{1, 2}));
  }
}

TEST(TreeNetwork, ASilentHostIsNamedWithAllItsRanksByAllSurvivors) {
  for (int hosts : {2, 3, 9, 12, 40})
    for (int victim = 0; victim < hosts; ++victim) {
      TreeNetwork network(hosts, static_cast<uint64_t>(victim));
      network.run_ms(30);
      network.stop(victim);
      network.run_ms(kSettleMs);
      for (int h = 0; h < hosts; ++h) {
        if (h == victim) continue;
        ASSERT_THAT(network.error_of(h).peers(), ElementsAre(2 * victim, 2 * victim + 1));
      }
      network.resume(victim);
      network.run_ms(60);
      EXPECT_FALSE(network.error_of(victim).is_ok()) << "the stopped host does not learn that it is out";
    }
}

TEST(TreeNetwork, APauseShorterThanTheLimitIsForgiven) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    TreeNetwork network(12, seed);
    for (int round = 0; round < 5; ++round) {
      const int host = static_cast<int>((seed + 5 * static_cast<uint64_t>(round)) % 12);
      network.run_ms(20);
      network.stop(host);
      network.run_ms(kDeadMs * 2 / 3);
      network.resume(host);
    }
    network.run_ms(kSettleMs);
    for (int h = 0; h < 12; ++h) ASSERT_TRUE(network.error_of(h).is_ok()) << network.error_of(h).message();
    EXPECT_GT(network.suspicions(), 0);
  }
}

TEST(TreeNetwork, APauseOfAllHostsAtOnceIsForgiven) {
  TreeNetwork network(12, 7);
  network.run_ms(30);
  for (int h = 0; h < 12; ++h) network.stop(h);
  network.run_ms(10 * kDeadMs);
  for (int h = 0; h < 12; ++h) network.resume(h);
  network.run_ms(kSettleMs);
  for (int h = 0; h < 12; ++h) EXPECT_TRUE(network.error_of(h).is_ok()) << network.error_of(h).message();
}

TEST(TreeNetwork, BothSidesOfACutNoticeIt) {
  TreeNetwork network(20, 3);
  network.run_ms(30);
  network.cut(0, 1);
  network.run_ms(kSettleMs);
  for (int h = 0; h < 20; ++h) EXPECT_FALSE(network.error_of(h).is_ok()) << "host " << h;
}

TEST(TreeNetwork, AnErrorCrossesEachConnectionOnce) {
  TreeNetwork network(40, 5);
  network.run_ms(30);
  network.fail(33, Status(Code::Aborted, "rank 66 aborts"));
  network.run_ms(60);
  for (int h = 0; h < 40; ++h) EXPECT_EQ(network.error_of(h).message(), "rank 66 aborts");
  EXPECT_EQ(network.error_messages(), 39);
}

TEST(TreeNetwork, TheFirstDepartureReachesEveryHostWhileOthersLeave) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    TreeNetwork network(40, seed);
    std::mt19937_64 random(seed);
    network.run_ms(30);
    Departure first{UINT64_MAX, -1};
    for (int i = 0; i < 5; ++i) {
      const auto host = static_cast<int>(random() % 40);
      const Departure departure{5 + random() % 4, 2 * host};
      if (departure < first) {
        first = departure;
        network.depart(host, departure);
      }
      network.run_ms(static_cast<int64_t>(random() % 10));
    }
    network.run_ms(60);
    for (int h = 0; h < 40; ++h) {
      ASSERT_EQ(network.departure_at(h), first) << "seed " << seed << ", host " << h;
      EXPECT_TRUE(network.error_of(h).is_ok());
    }
  }
}

TEST(TreeNetwork, OneOfEqualDeparturesIsToldAndEachConnectionIsCrossedOnce) {
  TreeNetwork network(40, 1);
  network.run_ms(30);
  network.depart(33, {5, 66});
  network.run_ms(60);
  EXPECT_EQ(network.departure_messages(), 39);
  for (int h = 0; h < 40; ++h) network.depart(h, {5, 100 + h});
  network.run_ms(60);
  EXPECT_EQ(network.departure_messages(), 39) << "later ones after as many calls change nothing";
}

TEST(TreeNetwork, LeavingInAnyOrderIsNoDeath) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    TreeNetwork network(20, seed);
    std::vector<int> order(20);
    for (int h = 0; h < 20; ++h) order[static_cast<size_t>(h)] = h;
    std::mt19937_64 random(seed);
    std::ranges::shuffle(order, random);
    for (int host : order) {
      network.run_ms(static_cast<int64_t>(random() % 40));
      network.leave(host);
    }
    for (int h = 0; h < 20; ++h) ASSERT_TRUE(network.error_of(h).is_ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ccom
