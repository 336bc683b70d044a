// SPDX-License-Identifier: Apache-2.0
//
// The programs that choose() returns for ranks that may use their hosts' memory: every one of them is proved, uses only
// the channels that channels_by_peer() opens, and is what its price says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/shape.h"
#include "algorithms/stage_plans.h"
#include "base/collective.h"
#include "plan/program_verify.h"
#include "planner/link_loads.h"
#include "planner/planner.h"
#include "tests/harness/results.h"
#include "tests/planner/machines.h"

namespace ccom {
namespace {

Topology cluster(const std::vector<int>& hosts, bool permuted = false, double bytes_per_second = 3e9) {
  return ranks_on(hosts, {.bytes_per_second = bytes_per_second, .caches = {{2, uint64_t{2} << 20, 1}}}, permuted);
}

const Settings kMemory{.shared_memory = true};

const StagePlanSource kPlans{stage_plan, stage_node_plan};

std::vector<Collective> all_collectives() {
  std::vector<Collective> all;
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    if (traits.collective != Collective::SendReceive) all.push_back(traits.collective);
  }
  return all;
}

// Channels that a stage's plans use between any two members of a group, at most.
void expect_channels_are_open(const Topology& topology, const Program& program) {
  for (const Stage& stage : program.stages) {
    if (stage.where != Stage::Where::Across) continue;
    const int needed = program.lanes * channels_of(stage.messages.staged);
    for (size_t group = 0; group < stage.groups.size(); ++group) {
      const std::vector<StageMember>& members = stage.groups[group];
      for (size_t member = 0; member < members.size(); ++member) {
        const std::vector<int> open = channels_by_peer(topology, kMemory, members[member].rank);
        for (const Step& step : stage_plan(program, stage, group, static_cast<int>(member), false).steps) {
          if (!step.is_transfer()) continue;
          const Rank peer = members[static_cast<size_t>(step.peer)].rank;
          ASSERT_GE(open[static_cast<size_t>(peer)], needed) << members[member].rank << " and " << peer;
        }
      }
    }
  }
}

void prove_programs(const Topology& topology) {
  for (const Collective collective : all_collectives()) {
    const std::vector<Rank> roots =
        is_rooted(collective) ? std::vector<Rank>{0, topology.nranks() - 1} : std::vector<Rank>{-1};
    for (const Rank root : roots) {
      for (const size_t bytes : {size_t{8}, size_t{64} << 10, size_t{64} << 20}) {
        const Choice choice = value_of(choose(topology, kMemory, {collective, bytes, false, root}));
        for (const Candidate& candidate : choice.candidates) {
          const Program& program = candidate.program;
          if (!candidate.legal || program.is_messages()) continue;
          const Result<ProgramReport> report = verify_program(program, kPlans);
          ASSERT_TRUE(report) << program.algorithm << " of " << name_of(collective) << ", " << bytes << " bytes, root "
                              << root << ": " << report.error().message();
          EXPECT_LE(report->max_roundings, candidate.roundings) << program.algorithm << " " << name_of(collective);
          expect_channels_are_open(topology, program);
        }
      }
    }
  }
}

TEST(Programs, AreProvedOnOneHost) {
  for (const int ranks : {2, 3, 8}) prove_programs(cluster({ranks}));
}

TEST(Programs, AreProvedOnEqualHosts) {
  prove_programs(cluster({2, 2}));
  prove_programs(cluster({3, 3, 3}));
}

TEST(Programs, AreProvedOnUnequalAndPermutedHosts) {
  for (const bool permuted : {false, true}) {
    prove_programs(cluster({1, 4}, permuted));
    prove_programs(cluster({3, 5}, permuted));
    prove_programs(cluster({2, 2, 3, 2}, permuted));
  }
}

std::string chosen(const Topology& topology, const Question& question, const char* forced = "") {
  Settings settings = kMemory;
  settings.forced = forced;
  return value_of(choose(topology, settings, question)).program().algorithm;
}

TEST(Programs, UseMemoryInsideHostsWhereTheyMay) {
  EXPECT_EQ(chosen(cluster({4}), {.bytes = 8}), "node");
  EXPECT_THAT(chosen(cluster({4, 4}), {.bytes = 8}), testing::StartsWith("hierarchical_"));
  EXPECT_THAT(chosen(cluster({1, 4}), {.bytes = 1 << 20}), testing::StartsWith("hierarchical_"));
  EXPECT_THAT(chosen(cluster({1, 1}), {.bytes = 8}), testing::Not(testing::StartsWith("hierarchical_")));
}

// No rule says so: messages through memory take a copy more.
TEST(Programs, ThroughMemoryCostLessThanMessagesOnOneHost) {
  for (const char* name : {"host:2", "host:4", "host:8", "host:16", "host:4/2", "host:8/2"}) {
    const Topology topology = *make_topology(name);
    for (const Collective collective : all_collectives()) {
      for (size_t bytes = 8; bytes <= size_t{64} << 20; bytes *= 2) {
        const Question question{collective, bytes, false, is_rooted(collective) ? 0 : -1};
        ASSERT_EQ(chosen(topology, question), "node") << name << " " << name_of(collective) << " " << bytes;
      }
    }
  }
}

// Emulated hosts, containers: what shares processors waits for its turn, with messages as with barriers.
TEST(Programs, UseMemoryWhereHostsShareProcessors) {
  for (const char* name : {"2*host:2/2", "2*host:4/2"}) {
    Topology topology = *make_topology(name);
    for (Host& host : topology.hosts) host.machine = "one";
    for (size_t bytes = 8; bytes <= size_t{64} << 20; bytes *= 4) {
      EXPECT_THAT(chosen(topology, {.bytes = bytes}), testing::StartsWith("hierarchical_leaders")) << name << bytes;
    }
  }
}

TEST(Programs, SayWhatTimeIsSpentOnAndWhyOthersLost) {
  const Topology host = *make_topology("host:4"), hosts = *make_topology("2*host:2");
  const Question question{.bytes = 1 << 16};
  const auto explained = [&](const Topology& topology) {
    const Result<Choice> choice = choose(topology, kMemory, question);
    const Details details = analyze(topology, question, *choice, 1000);
    return explain_json(question, *choice, &details);
  };
  EXPECT_THAT(explained(host), testing::HasSubstr("least expected time: 2 barriers"));
  EXPECT_THAT(explained(host), testing::ContainsRegex("x: [0-9.]+ us to start and await messages, [0-9.]+ to copy"));
  EXPECT_THAT(explained(hosts), testing::ContainsRegex("inside [0-9.]+ us, across [0-9.]+ us"));
  EXPECT_THAT(explained(hosts), testing::ContainsRegex("us between hosts, the choice [0-9.]+"));
}

// The promise holds for every kind of program alike.
TEST(Programs, KeepTheAccuracyPromise) {
  for (const char* name : {"host:8", "2*host:4", "8*host:8", "8*host:8@100Gbit", "host:3+host:5"}) {
    const Topology topology = *make_topology(name);
    for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::Reduce}) {
      for (size_t bytes = 8; bytes <= size_t{64} << 20; bytes *= 8) {
        const Result<Choice> choice =
            choose(topology, kMemory, {collective, bytes, true, collective == Collective::Reduce ? 0 : -1});
        const Candidate& candidate = choice->candidates[choice->chosen];
        EXPECT_LE(candidate.roundings, allowed_roundings(topology)) << name << " " << candidate.program.algorithm;
      }
    }
  }
}

TEST(Programs, AreNamedByFamilyOrEach) {
  const Topology topology = cluster({4, 4});
  const Question question{.bytes = 1 << 20};
  EXPECT_EQ(chosen(topology, question, "hierarchical_leaders"), "hierarchical_leaders");
  EXPECT_EQ(chosen(topology, question, "hierarchical_sharded"), "hierarchical_sharded");
  EXPECT_EQ(chosen(topology, question, "hierarchical"), chosen(topology, question));
  EXPECT_EQ(chosen(topology, question, "hierarchical_leaders,ring"), "ring") << "the last bare name counts";
}

// Measured: on a slow wire one flow is faster than many; long vectors on a fast one need several.
TEST(Programs, ShareLongVectorsOnFastNetworksOnly) {
  const Question small{.bytes = 8}, large{.bytes = 64 << 20};
  EXPECT_EQ(chosen(cluster({4, 4}, false, 12.5e9), large), "hierarchical_sharded");
  EXPECT_EQ(chosen(cluster({4, 4}, false, 12.5e9), small), "hierarchical_leaders");
  EXPECT_EQ(chosen(cluster({4, 4}, false, 125e6), large), "hierarchical_leaders");
  EXPECT_EQ(chosen(cluster({4, 4}, false, 125e6), small), "hierarchical_leaders");
}

}  // namespace
}  // namespace ccom
