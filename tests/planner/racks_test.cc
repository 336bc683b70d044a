// SPDX-License-Identifier: Apache-2.0
//
// Networks of racks: that prices and bounds know them, and what is chosen then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/bound.h"
#include "planner/planner.h"
#include "planner/rack_traffic.h"
#include "tests/harness/results.h"
#include "tests/planner/rack_machines.h"

namespace ccom {
namespace {

using testing::HasSubstr;

// ---- Prices and bounds ----------------------------------------------------------------------------------------------

// By the rounds, for racks of one size: the busiest rack's share in each.
TEST(RackTraffic, StretchesRoundsByTheBusiestRacksUplinks) {
  const Topology topology = in_racks_of("16");
  const std::vector<int> racks = topology.rack_numbers();
  const std::vector<std::vector<Rank>> groups{in_row()};
  const RackTraffic traffic(topology, racks, groups);
  EXPECT_TRUE(traffic.crosses());
  const auto stretch = [&](Pattern pattern) {
    return traffic.stretch(level_rounds(flat_level(pattern, kRanks), kRanks, 1));
  };
  EXPECT_DOUBLE_EQ(stretch(Pattern::Ring), 1) << "one of 16 messages leaves a rack, and 4 can";
  EXPECT_DOUBLE_EQ(stretch(Pattern::Direct), 4.0 * 48 / 63);
  EXPECT_DOUBLE_EQ(stretch(Pattern::RecursiveDoubling), (4 * 1 + 2 * 4) / 6.0) << "bits 16 and 32 leave it";
  // 32, 16, 8, 4, 2, 1 of 63 bytes 32, 16, 8, 4, 2, 1 places ahead.
  EXPECT_DOUBLE_EQ(stretch(Pattern::Circulant), (32 * 4 + 16 * 4 + 8 * 2 + 4 + 2 + 1) / 63.0);
  EXPECT_LT(stretch(Pattern::Bine), 1.2) << "half of the data goes to neighbours";
  const Topology flat = *make_topology("64*host:1");
  const std::vector<int> none = flat.rack_numbers();
  EXPECT_FALSE(RackTraffic(flat, none, groups).crosses());
}

const Candidate& candidate(const Choice& choice, const std::string& name) {
  for (const Candidate& each : choice.candidates) {
    if (each.program.algorithm == name) return each;
  }
  ADD_FAILURE() << "no " << name;
  return choice.candidates[0];
}

Choice chosen(const Topology& topology, Collective collective, size_t bytes) {
  const Rank root = collective == Collective::Broadcast || collective == Collective::Gather ? 0 : -1;
  return value_of(choose(topology, {}, {collective, bytes, false, root}));
}

TEST(Racks, DoNotMatterWithoutATaper) {
  const Topology flat = *make_topology("64*host:1@100Gbit"), racks = *make_topology("64*host:1@100Gbit+racks:16");
  for (const size_t bytes : {size_t{1} << 16, size_t{1} << 26}) {
    const Choice a = chosen(flat, Collective::AllReduce, bytes), b = chosen(racks, Collective::AllReduce, bytes);
    for (const char* name : {"ring", "circulant", "bine"}) {
      EXPECT_NEAR(candidate(a, name).time_ns, candidate(b, name).time_ns, 0.02 * candidate(a, name).time_ns + 126e3)
          << name << ": but for the way through two more switches";
    }
  }
}

TEST(Racks, ATaperMakesFarPartnersDear) {
  const Topology flat = *make_topology("64*host:1@10Gbit"), racks = *make_topology("64*host:1@10Gbit+racks:16/4");
  const size_t bytes = size_t{64} << 20;
  const Choice a = chosen(flat, Collective::AllReduce, bytes), b = chosen(racks, Collective::AllReduce, bytes);
  const auto slower = [&](const char* name) { return candidate(b, name).time_ns / candidate(a, name).time_ns; };
  EXPECT_GT(slower("circulant"), 3);
  EXPECT_GT(slower("two_shot"), 2.9);
  EXPECT_LT(slower("bine"), 1.3);
  EXPECT_LT(slower("ring"), 1.1);
}

TEST(Racks, BoundIsThatOfTheirUplinks) {
  const Topology racks = *make_topology("64*host:1@8Gbit+racks:16/4");
  const double uplinks = 16 * 1e9 / 4;
  const size_t bytes = size_t{64} << 20;
  const Bound sum = lower_bound(racks, {Collective::AllReduce, bytes});
  EXPECT_STREQ(sum.narrowest, "hosts' uplinks") << "a rack's uplinks are as fast as four of its hosts";
  const Bound exchange = lower_bound(racks, {Collective::AllToAll, bytes});
  EXPECT_STREQ(exchange.narrowest, "racks' uplinks");
  EXPECT_DOUBLE_EQ(exchange.bandwidth_ns, 16 * 0.75 * static_cast<double>(bytes) * 1e9 / uplinks);
  const Topology thin = *make_topology("64*host:1@8Gbit+racks:16/100");
  const Bound thin_sum = lower_bound(thin, {Collective::AllReduce, bytes});
  EXPECT_STREQ(thin_sum.narrowest, "racks' uplinks");
  EXPECT_DOUBLE_EQ(thin_sum.bandwidth_ns, 2.0 * 3 / 4 * static_cast<double>(bytes) * 1e9 / (16 * 1e9 / 100));
}

// ---- Choices --------------------------------------------------------------------------------------------------------

TEST(Racks, RanksThatAreDealtOutAreTakenRackByRack) {
  const Topology dealt = dealt_out();
  const Choice choice = chosen(dealt, Collective::AllReduce, size_t{1} << 20);
  const std::vector<Rank>& order = candidate(choice, "bine").program.stages[0].messages.staged.levels[0].groups[0];
  const std::vector<int> racks = dealt.rack_numbers();
  for (size_t i = 1; i < order.size(); ++i) {
    EXPECT_LE(racks[static_cast<size_t>(order[i - 1])], racks[static_cast<size_t>(order[i])]);
  }
}

TEST(Racks, BineIsTakenWhereFarPartnersAreDearAndRingsAreLong) {
  const Topology flat = *make_topology("64*host:1@10Gbit"), racks = *make_topology("64*host:1@10Gbit+racks:12/4");
  const auto name = [](const Topology& topology, Collective collective, size_t bytes) {
    return chosen(topology, collective, bytes).program().algorithm;
  };
  for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20}) {
    EXPECT_EQ(name(racks, Collective::AllReduce, bytes), "bine") << bytes;
    EXPECT_NE(name(flat, Collective::AllReduce, bytes), "bine") << "it has no more to offer than circulant there";
  }
  EXPECT_EQ(name(racks, Collective::AllReduce, size_t{1} << 30), "ring");
}

// One flow fills a fifth of such a card, and a rack's uplinks a quarter of its hosts'.
TEST(Racks, DoNotMatterWhereNoFlowFillsACard) {
  const Topology flat = *make_topology("64*host:1@100Gbit"), racks = *make_topology("64*host:1@100Gbit+racks:16/4");
  const Choice a = chosen(flat, Collective::AllReduce, size_t{64} << 20),
               b = chosen(racks, Collective::AllReduce, size_t{64} << 20);
  EXPECT_NEAR(candidate(a, "circulant").time_ns, candidate(b, "circulant").time_ns, 20e3);
}

constexpr char kSites[] = "4*host:1@10Gbit+racks:2@200Mbit,25ms",
               kCrowdedSites[] = "4*host:2@10Gbit+racks:2@200Mbit,25ms";

// What crosses once is a vector each way; a ring takes one and a half.
TEST(Sites, LongSumsTakeWhatTheLinkBetweenThemTakes) {
  for (const char* name : {kSites, kCrowdedSites, "12*host:4@10Gbit+racks:4@1Gbit,10ms"}) {
    const Topology sites = *make_topology(name);
    const size_t bytes = size_t{64} << 20;
    const Choice choice = value_of(choose(sites, {.shared_memory = true}, {Collective::AllReduce, bytes}));
    const Candidate& best = choice.candidates[choice.chosen];
    const Bound bound = lower_bound(sites, {Collective::AllReduce, bytes}, true);
    EXPECT_STREQ(bound.narrowest, "racks' uplinks");
    EXPECT_GT(best.time_ns, bound.bandwidth_ns) << name << best.program.algorithm;
    EXPECT_LT(best.time_ns, 1.25 * bound.bandwidth_ns) << name << best.program.algorithm;
    EXPECT_GT(candidate(choice, "ring").time_ns, 1.4 * bound.bandwidth_ns) << name;
  }
}

// Several ranks of a host send side by side: they share its card, but the link is what is narrow.
TEST(Sites, FlowsOfAHostDoNotIdleBeforeTheLink) {
  const Topology alone = *make_topology(kSites), crowded = *make_topology(kCrowdedSites);
  const size_t bytes = size_t{64} << 20;
  const auto racks_of = [&](const Choice& choice) { return candidate(choice, "racks").time_ns; };
  const Result<Choice> of_one = choose(alone, {.shared_memory = true}, {Collective::AllReduce, bytes}),
                       of_two = choose(crowded, {.shared_memory = true}, {Collective::AllReduce, bytes});
  ASSERT_TRUE(of_one && of_two);
  EXPECT_LT(racks_of(*of_two), 1.05 * racks_of(*of_one));
  EXPECT_LT(racks_of(*of_two), 1.1 * lower_bound(crowded, {Collective::AllReduce, bytes}, true).bandwidth_ns);
  EXPECT_EQ(of_two->program().algorithm, "racks") << "measured faster than tiles of hierarchical_leaders";
}

TEST(Sites, ShortSumsCrossOnce) {
  const Choice choice = chosen(*make_topology(kSites), Collective::AllReduce, 8);
  EXPECT_LT(choice.candidates[0].time_ns, 1.1 * 25e6);
  EXPECT_GT(candidate(choice, "ring").time_ns, 3 * 25e6);
}

// A tile of a program of messages waits for the one before it; four of a program over hosts are on their way.
TEST(Sites, TilesThatWaitForOneAnotherPayTheWayEachTime) {
  const Topology sites = *make_topology(kSites);
  const Choice choice = chosen(sites, Collective::AllReduce, size_t{64} << 20);
  const Candidate &tiled = candidate(choice, "racks_one_shot"), &over_hosts = candidate(choice, "hierarchical_leaders");
  EXPECT_GT(tiled.program.tile_bytes, 0U);
  EXPECT_GT(tiled.time_ns, over_hosts.time_ns + 10 * 25e6);
  EXPECT_GE(over_hosts.program.tile_bytes, static_cast<size_t>(4 * sites.bytes_between_racks()));
  const Choice near = chosen(*make_topology("4*host:1@10Gbit"), Collective::AllReduce, size_t{64} << 20);
  EXPECT_TRUE(std::ranges::none_of(near.candidates, [](const Candidate& each) {
    return each.program.algorithm == "hierarchical_leaders" || each.program.algorithm == "racks";
  })) << "one rank on each host, and no racks";
}

TEST(Sites, OfUnequalSizesHaveNoLevels) {
  const Choice choice = chosen(*make_topology("5*host:1@10Gbit+racks:2,3@200Mbit,25ms"), Collective::AllReduce, 4096);
  EXPECT_TRUE(
      std::ranges::none_of(choice.candidates, [](const Candidate& each) { return each.program.algorithm == "racks"; }));
}

TEST(Bine, IsRefusedWhereRanksAreNoPowerOfTwo) {
  const Topology twelve = *make_topology("12*host:1");
  for (const Collective collective : {Collective::AllReduce, Collective::AllGather, Collective::AllToAll}) {
    EXPECT_THAT(error_of(choose(twelve, {.forced = "bine"}, {collective, 4096})).message(),
                HasSubstr("needs a power of two of ranks"));
  }
  EXPECT_TRUE(choose(twelve, {.forced = "bine"}, {Collective::Broadcast, 4096, false, 3}));
  EXPECT_TRUE(choose(twelve, {.forced = "bine_latency"}, {Collective::AllReduce, 4096}));
}

}  // namespace
}  // namespace ccom
