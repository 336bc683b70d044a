// SPDX-License-Identifier: Apache-2.0
//
// What synthetic machines are tuned to: domains, groups and thresholds follow from where ranks are bound; the plans
// that follow from them are proved; and by the prices of node_cost.h they are the cheapest.
#include "planner/node_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "plan/node_verify.h"
#include "planner/node_cost.h"
#include "planner/planner.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr size_t kTiny = 64;
constexpr size_t kLarge = size_t{64} << 20;

struct Machine {
  int domains = 4;           // 2 sockets of 2
  int cores_per_domain = 8;  // which share a cache
};

// Rank r is bound to core r of the machine, from its beginning.
Topology bound(int ranks, const Machine& machine) {
  std::vector<RankView> views;
  const int cores = machine.domains * machine.cores_per_domain;
  for (int rank = 0; rank < ranks; ++rank) {
    const int core = rank % cores;
    const int domain = core / machine.cores_per_domain;
    RankView view;
    view.host.id = view.host.name = "a";
    view.host.caches = {{2, uint64_t{1} << 20, 1}, {3, uint64_t{32} << 20, machine.cores_per_domain}};
    view.locality = {{core}, 0, domain, domain * machine.cores_per_domain};
    views.push_back(view);
  }
  return *merge(views);
}

// As many ranks in every domain.
Topology spread(int ranks) { return bound(ranks, {.domains = 4, .cores_per_domain = ranks / 4}); }

Topology unbound(int ranks, int cpus) {
  RankView view;
  view.host.id = view.host.name = "a";
  view.host.cpus = cpus;
  return *merge(std::vector<RankView>(static_cast<size_t>(ranks), view));
}

std::vector<int> domains_of(const Topology& topology) {
  std::vector<int> domains;
  for (const Place& place : topology.ranks) domains.push_back(place.numa_node);
  return domains;
}

TEST(NodeTuning, FindsTheDomainsAndGroupsOfBoundRanks) {
  const NodeTuning tuning = node_tuning(bound(32, {}));
  EXPECT_THAT(tuning.domains, ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7), SizeIs(8), SizeIs(8), SizeIs(8)));
  EXPECT_EQ(tuning.domains[3].front(), 24);
  EXPECT_EQ(tuning.groups, tuning.domains);
}

TEST(NodeTuning, FindsRanksThatAreDealtOutInTurn) {
  Topology topology = bound(32, {});
  for (size_t rank = 0; rank < 32; ++rank) {
    topology.ranks[rank].numa_node = static_cast<int>(rank % 4);
    topology.ranks[rank].cache_group = static_cast<int>(rank % 4) * 8;
  }
  EXPECT_THAT(node_tuning(topology).domains[1], ElementsAre(1, 5, 9, 13, 17, 21, 25, 29));
}

TEST(NodeTuning, GroupsAreForManyRanksWithACoreEach) {
  EXPECT_THAT(node_tuning(bound(16, {.domains = 2})).groups, ElementsAre(SizeIs(8), SizeIs(8)));
  EXPECT_THAT(node_tuning(bound(15, {.domains = 2})).groups, IsEmpty()) << "few ranks";
  EXPECT_THAT(node_tuning(bound(64, {})).groups, IsEmpty()) << "two ranks on each core";
  EXPECT_THAT(node_tuning(bound(8, {.domains = 1})).groups, IsEmpty()) << "one cache";
  EXPECT_THAT(node_tuning(bound(32, {.domains = 32, .cores_per_domain = 1})).groups, IsEmpty()) << "groups of one";
}

TEST(NodeTuning, GuessesGroupsFromTheSizeOfCachesWhereRanksAreNotBound) {
  Topology topology = unbound(32, 32);
  EXPECT_THAT(node_tuning(topology).groups, IsEmpty());
  topology.hosts[0].caches = {{2, 1 << 20, 1}, {3, 32 << 20, 8}};
  EXPECT_THAT(node_tuning(topology).groups, ElementsAre(SizeIs(8), SizeIs(8), SizeIs(8), SizeIs(8)));
  EXPECT_THAT(node_tuning(topology).domains, IsEmpty());
}

TEST(NodeTuning, HasNoDomainsWhereTheyAreUnknownUnequalOrSmall) {
  Topology topology = bound(32, {});
  topology.ranks[5].numa_node = -1;
  EXPECT_THAT(node_tuning(topology).domains, IsEmpty()) << "a rank that is not bound";
  EXPECT_THAT(node_tuning(bound(31, {})).domains, IsEmpty()) << "8 + 8 + 8 + 7";
  EXPECT_THAT(node_tuning(bound(8, {})).domains, IsEmpty()) << "all in the first";
  EXPECT_THAT(node_tuning(spread(16)).domains, IsEmpty()) << "more sums of domains than a rank has to add";
  EXPECT_THAT(node_tuning(unbound(32, 32)).domains, IsEmpty());
}

TEST(NodeTuning, ThresholdsFollowRanksAndCaches) {
  EXPECT_EQ(node_tuning(unbound(2, 8)).one_shot_bytes, size_t{256} << 10);
  EXPECT_EQ(node_tuning(unbound(4, 8)).one_shot_bytes, (size_t{256} << 10) / 9);
  EXPECT_EQ(node_tuning(unbound(8, 8)).stream_bytes, size_t{2} * 8 * (2 << 20)) << "caches unknown";
  EXPECT_EQ(node_tuning(bound(32, {})).stream_bytes, size_t{2} * 32 * (1 << 20));
}

// ---- The plans that follow ------------------------------------------------------------------------------------------

std::vector<NodePlan> plans_of(int nranks, const NodeShape& shape, const Reach& reach) {
  const std::vector<Reach> all(static_cast<size_t>(nranks), reach);
  std::vector<NodePlan> plans;
  for (Rank rank = 0; rank < nranks; ++rank) {
    plans.push_back(node_plan(node_task(Collective::AllReduce, nranks, -1), rank, false, shape, all));
  }
  return plans;
}

constexpr Reach kNone{};
constexpr Reach kAll{true, true};

NodeShape shape_of(const Topology& topology, const NodeCase& asked, const Reach& reach) {
  return node_shape(node_tuning(topology), asked, std::vector<Reach>(topology.ranks.size(), reach));
}

TEST(NodeTuning, LeadsToPlansThatAreProved) {
  for (const int nranks : {8, 16, 32, 64, 192}) {
    const Topology topology = spread(nranks);
    for (const size_t bytes : {kTiny, size_t{10000}, kLarge}) {
      for (const bool reached : {false, true}) {
        const NodeShape shape = shape_of(topology, {.bytes = bytes}, reached ? kAll : kNone);
        const bool cuts = shape.scheme == NodeScheme::TwoShot || shape.scheme == NodeScheme::Domains;
        const auto plans = plans_of(nranks, shape, reached && cuts ? kAll : kNone);
        const NodeCallPlans call{node_task(Collective::AllReduce, nranks, -1), plans,
                                 cuts && !reached ? size_t{3} : size_t{1}};
        const std::array calls = {call, call};  // so that banks are used again
        const Result<NodeReport> report = verify_node(calls);
        ASSERT_TRUE(report) << nranks << " ranks, " << bytes << " bytes: " << report.error().message();
        EXPECT_EQ(report->max_roundings, shape.scheme == NodeScheme::Domains ? 2 : 1);
      }
    }
  }
}

// ---- What they cost -------------------------------------------------------------------------------------------------

double time_of(const Topology& topology, const NodeShape& shape, const Reach& reach, size_t bytes) {
  const std::vector<int> domains = domains_of(topology);
  return node_time_ns(plans_of(topology.nranks(), shape, reach), {.unit_bytes = bytes}, domains, NodePrices());
}

std::vector<std::vector<Rank>> all_domains(const Topology& topology) {
  std::vector<std::vector<Rank>> groups(4);
  for (Rank rank = 0; rank < topology.nranks(); ++rank) {
    groups[static_cast<size_t>(topology.ranks[static_cast<size_t>(rank)].numa_node)].push_back(rank);
  }
  return groups;
}

TEST(NodeCost, DomainsPayForLargeVectorsOfManyRanksAndAreChosenThere) {
  for (const int nranks : {8, 16, 32, 64, 192}) {
    const Topology topology = spread(nranks);
    const NodeShape domains{NodeScheme::Domains, all_domains(topology)};
    const NodeShape two_shot{NodeScheme::TwoShot, {}};
    const bool many = nranks >= 32;
    for (const Reach& reach : {kNone, kAll}) {
      const double ours = time_of(topology, domains, reach, kLarge);
      const double theirs = time_of(topology, two_shot, reach, kLarge);
      EXPECT_EQ(ours < theirs, many) << nranks << " ranks: " << ours << " and " << theirs;
    }
    EXPECT_EQ(shape_of(topology, {.bytes = kLarge}, kAll).scheme, many ? NodeScheme::Domains : NodeScheme::TwoShot);
    const NodeCase narrow{.bytes = kLarge, .rounds_once = true};
    EXPECT_EQ(shape_of(topology, narrow, kAll).scheme, NodeScheme::TwoShot);
  }
}

TEST(NodeCost, GroupsPayForTinyCallsOfManyRanksAndAreChosenThere) {
  for (const int nranks : {4, 8, 16, 32, 64, 192}) {
    const Topology topology = spread(nranks);
    const double groups = time_of(topology, {NodeScheme::GatherRelease, all_domains(topology)}, kNone, kTiny);
    const double one_shot = time_of(topology, {NodeScheme::OneShot, {}}, kNone, kTiny);
    const bool many = nranks >= 16;
    EXPECT_EQ(groups < one_shot, many) << nranks << " ranks: " << groups << " and " << one_shot;
    EXPECT_EQ(shape_of(topology, {.bytes = kTiny}, kNone).scheme,
              many ? NodeScheme::GatherRelease : NodeScheme::OneShot);
  }
}

TEST(NodeCost, OneShotPaysForSmallVectorsAndTwoShotForLargeOnes) {
  const Topology topology = spread(8);
  for (const size_t bytes : {kTiny, kLarge}) {
    const double one = time_of(topology, {NodeScheme::OneShot, {}}, kNone, bytes);
    const double two = time_of(topology, {NodeScheme::TwoShot, {}}, kNone, bytes);
    EXPECT_EQ(one < two, bytes == kTiny) << one << " and " << two;
  }
}

TEST(NodeCost, CountsWhatAPlanLoadsAndStores) {
  const std::vector<int> domains = {0, 0, 1, 1};
  const auto traffic = [&](const NodeShape& shape, const Reach& reach, size_t tiles) {
    return traffic_of(plans_of(4, shape, reach)[0], {.unit_bytes = 4000, .tiles = tiles}, domains);
  };
  const NodeTraffic reached = traffic({NodeScheme::TwoShot, {}}, kAll, 1);
  EXPECT_EQ(reached.meets, 2);
  EXPECT_EQ(reached.lines, 6);
  EXPECT_EQ(reached.local_bytes, 4000) << "two parts in, two out";
  EXPECT_EQ(reached.remote_bytes, 4000);
  EXPECT_EQ(reached.combined_bytes, 4000);
  const NodeTraffic staged = traffic({NodeScheme::TwoShot, {}}, kNone, 1);
  // In: 3 parts read and written. Part: 4 read, 2 written. Out: 3 read and written.
  EXPECT_EQ(staged.local_bytes + staged.remote_bytes, 18000);
  EXPECT_EQ(staged.remote_bytes, 4000);
  EXPECT_EQ(traffic({NodeScheme::TwoShot, {}}, kNone, 5).meets, 6);
  const NodeTraffic divided = traffic({NodeScheme::Domains, {{0, 1}, {2, 3}}}, kNone, 1);
  EXPECT_EQ(divided.meets, 3);
  EXPECT_EQ(divided.remote_bytes, 2000) << "half of the other domain's sums";
}

TEST(Explain, TellsTheSchemeOfANode) {
  const auto explained = [](const Topology& topology, size_t bytes, bool narrow) {
    const Question question{Collective::AllReduce, bytes, narrow, -1};
    const Result<Choice> choice = choose(topology, {.shared_memory = true}, question);
    EXPECT_TRUE(choice);
    EXPECT_EQ(choice->program().algorithm, "node");
    return explain_json(question, *choice);
  };
  const Topology large = bound(32, {});
  EXPECT_THAT(explained(large, kTiny, false), HasSubstr("\"note\":\"node_gather_release; staged: 2 meets, "));
  EXPECT_THAT(explained(large, kLarge, false), HasSubstr("node_domains; staged: 3 meets, "));
  EXPECT_THAT(explained(large, kLarge, false), HasSubstr(" of other memory domains)"));
  EXPECT_THAT(explained(large, kLarge, true), HasSubstr("node_two_shot; staged: 2 meets, "));
  EXPECT_THAT(explained(unbound(2, 2), 100000, false),
              HasSubstr("node_one_shot; staged: 1 meet, 500000 bytes; readable: 2 meets, 300000 bytes; mapped: "
                        "node_two_shot, 2 meets, 200000 bytes"));
}

}  // namespace
}  // namespace ccom
