// SPDX-License-Identifier: Apache-2.0
//
// Programs on the clock: stages in a host against the prices of their plans, messages against plans alone, tiles that
// overlap and compete for wires, and that programs of every collective end on every form of hosts.
#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/stage_cost.h"
#include "sim/simulator.h"
#include "tests/plan/program_shapes.h"

namespace ccom {
namespace {

// 10 us and 1 byte per ns between hosts, nothing else costs.
Topology plain(const std::string& name) {
  Topology topology = *make_topology(name);
  topology.network = {10000, 1e9};
  topology.costs = {};
  return topology;
}

HostRanks ranks_of(const Topology& topology) {
  HostRanks hosts;
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) hosts.push_back(topology.ranks_of(host));
  return hosts;
}

Program allreduce_over(const Topology& topology, int owners) {
  return *program_over(Collective::AllReduce, ranks_of(topology), owners, -1, Pattern::RecursiveDoubling);
}

SimReport simulated(const Topology& topology, const Program& program, size_t bytes, const Faults& faults = {}) {
  SimOptions options{.unit_bytes = bytes, .faults = faults};
  const auto report = simulate_program(topology, program, options);
  EXPECT_TRUE(report) << report.error().message();
  return report ? *report : SimReport{};
}

double node_time(const Program& program, size_t stage, size_t group, size_t unit_bytes) {
  return host_stage_cost(program, program.stages[stage], group, unit_bytes, 1, {.input = true}, {.cpus = 2}).time_ns;
}

TEST(ProgramSimulation, StagesFollowOneAnother) {
  const Topology topology = plain("2*host:2");
  const size_t n = 4096;
  const SimReport report = simulated(topology, allreduce_over(topology, 2), n);
  const Program program = allreduce_over(topology, 2);
  const double inside = node_time(program, 0, 0, n / 2) + node_time(program, 2, 0, n / 2);
  // Both owners of a host exchange a half at once over its one network card.
  EXPECT_NEAR(report.time_ns, inside + 10000 + 2 * (n / 2), 1);
  ASSERT_EQ(report.stages.size(), 3u);
  EXPECT_NEAR(report.stages[0].waited_ns, node_time(program, 0, 0, n / 2), 1);
  // All end at once; the one that is called last may have had its message before the other one, and waited for it.
  EXPECT_NEAR(report.stages[1].waited_ns + report.stages[2].waited_ns,
              10000 + 2 * (n / 2) + node_time(program, 2, 0, n / 2), 1);
}

TEST(ProgramSimulation, WaitsOfTheLastRankAddUp) {
  const Topology topology = plain("host:3+host:5");
  Program program = allreduce_over(topology, 3);
  program.tile_bytes = size_t{64} << 10;
  const SimReport report = simulated(topology, program, 1 << 20);
  const double sum = std::accumulate(report.stages.begin(), report.stages.end(), 0.0,
                                     [](double total, const StageUse& use) { return total + use.waited_ns; });
  EXPECT_NEAR(sum, report.time_ns, 1e-6 * report.time_ns);
}

TEST(ProgramSimulation, TilesOverlapAndShareTheWire) {
  const Topology topology = plain("2*host:4");
  Program program = allreduce_over(topology, 4);
  const size_t n = size_t{16} << 20, tile = size_t{1} << 20;
  program.tile_bytes = tile;
  const double one = simulated(topology, program, tile).time_ns;
  const SimReport all = simulated(topology, program, n);
  EXPECT_LT(all.time_ns, 0.9 * one * 16);
  EXPECT_GE(all.time_ns, static_cast<double>(n)) << "n bytes pass the card at a byte per ns";
  double bytes = 0;
  for (const WireUse& use : all.wires) bytes += use.bytes;
  EXPECT_DOUBLE_EQ(bytes, 4.0 * n) << "out of and into each of two hosts";
}

TEST(ProgramSimulation, MessagesDoNotMoveOnARankInItsHost) {
  const Topology topology = plain("2*host:2");
  Program program = allreduce_over(topology, 2);
  program.tile_bytes = 4096;
  SimOptions options{.unit_bytes = 16 * 4096};
  options.traced_ranks = {0};
  const auto report = simulate_program(topology, program, options);
  ASSERT_TRUE(report) << report.error().message();
  size_t node_stages = 0, steps = 0;
  for (const TraceStep& inside : report->trace) {
    if (!inside.is_node_stage) continue;
    ++node_stages;
    for (const TraceStep& step : report->trace) {
      if (step.is_node_stage || !step.what.is_receive()) continue;
      ++steps;
      EXPECT_FALSE(step.end > inside.start && step.end < inside.end) << "tiles " << step.tile << ", " << inside.tile;
    }
  }
  EXPECT_EQ(node_stages, 2u * 16);
  EXPECT_GT(steps, 0u);
}

TEST(ProgramSimulation, AStragglerHoldsUpEverybody) {
  const Topology topology = plain("2*host:3");
  const Program program = allreduce_over(topology, 1);
  const double healthy = simulated(topology, program, 4096).time_ns;
  const double late = simulated(topology, program, 4096, {.slow = {}, .stragglers = {{4, 1e6}}, .deaths = {}}).time_ns;
  EXPECT_NEAR(late, healthy + 1e6, 1);
}

TEST(ProgramSimulation, ASlowWireIsSlow) {
  const Topology topology = plain("2*host:2");
  const Program program = allreduce_over(topology, 1);
  const double healthy = simulated(topology, program, 1 << 20).time_ns;
  std::vector<uint32_t> path;
  Wires(topology).path(0, 2, path);
  const Faults slow{.slow = {{path[0], 0.5}}, .stragglers = {}, .deaths = {}};
  EXPECT_NEAR(simulated(topology, program, 1 << 20, slow).time_ns, healthy + (1 << 20), 1);
}

TEST(ProgramSimulation, NobodyPassesADeadRank) {
  const Topology topology = plain("2*host:2");
  const SimReport report = simulated(topology, allreduce_over(topology, 2), 4096,
                                     {.slow = {}, .stragglers = {{3, 5000}}, .deaths = {{3, 1000}}});
  for (const double done : report.rank_done_ns) EXPECT_LT(done, 0);
}

TEST(ProgramSimulation, ReachChangesTheTimeInside) {
  const Topology topology = plain("host:4");
  Program program{.algorithm = "node", .collective = Collective::AllReduce, .nranks = 4};
  const uint32_t in = program.add_list({{0, Buffer::Input, 0}}), out = program.add_list({{0, Buffer::Output, 0}});
  Stage stage{.where = Stage::Where::Host, .sums = true, .completes = true, .node = node_choice(NodeScheme::TwoShot)};
  stage.groups.push_back({{0, in, out}, {1, in, out}, {2, in, out}, {3, in, out}});
  program.stages.push_back(stage);
  SimOptions options{.unit_bytes = 1 << 20};
  const auto staged = simulate_program(topology, program, options);
  options.reach = {.input = true, .output = true};
  const auto mapped = simulate_program(topology, program, options);
  ASSERT_TRUE(staged && mapped);
  EXPECT_LT(mapped->time_ns, 0.7 * staged->time_ns);
}

TEST(ProgramSimulation, EveryProgramEndsOnEveryFormOfHosts) {
  for (const char* name : {"2*host:2", "host:3+host:5", "host:1+host:4", "host:2+host:2+host:3+host:2", "8*host:2"}) {
    const Topology topology = plain(name);
    const HostRanks hosts = ranks_of(topology);
    for (const Collective collective : kProgramCollectives) {
      for (int owners = 1; owners <= 4; ++owners) {
        auto program = program_over(collective, hosts, owners, topology.nranks() - 1, Pattern::Ring);
        if (!program) continue;
        for (const size_t tile : {0, 4096}) {
          program->tile_bytes = collective == Collective::Barrier ? 0 : tile;
          const SimReport report = simulated(topology, *program, collective == Collective::Barrier ? 0 : 40000);
          EXPECT_GT(report.time_ns, 10000) << name << " " << name_of(collective) << " " << owners;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ccom
