// SPDX-License-Identifier: Apache-2.0
//
// The ways of a call through shared memory: there is a choice where there should be one, and whatever is chosen, on
// whatever memory, computes the same expression.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithms/node.h"
#include "algorithms/stage_plans.h"
#include "base/collective.h"
#include "plan/node_verify.h"
#include "plan/program_verify.h"
#include "planner/planner.h"
#include "tests/harness/results.h"

namespace ccom {
namespace {

constexpr size_t kMostSmall = size_t{8} << 10;  // that a rank shows

// A call of all ranks of a host, and in how many ways it may run.
struct HostCall {
  Topology topology;
  Program program;
  std::vector<NodeChoice> ways(const LineCosts& lines = {}) const {
    return node_ways(topology, program, program.stages[0], lines);
  }
};

HostCall host_call(int ranks, int cpus, const Question& question) {
  HostCall call{*make_topology("host:" + std::to_string(ranks)), {}};
  call.topology.hosts[0].cpus = cpus;
  const Result<Choice> choice = choose(call.topology, {.shared_memory = true}, question);
  EXPECT_TRUE(choice && choice->program().is_node());
  call.program = choice->program();
  return call;
}

std::vector<Collective> with_data() {
  std::vector<Collective> found;
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    if (traits.collective != Collective::Barrier && traits.collective != Collective::SendReceive)
      found.push_back(traits.collective);
  }
  return found;
}

TEST(WaysOfACall, AreSeveralAboveTheSizeOfSmallCalls) {
  for (const int ranks : {2, 3, 4}) {
    for (const int cpus : {2, 4}) {
      for (const Collective collective : with_data()) {
        for (size_t bytes = 64; bytes <= size_t{1} << 30; bytes *= 2) {
          const size_t unit = bytes / largest_units(collective, ranks);
          if (unit * input_units(collective, ranks, true) <= kMostSmall) continue;
          for (const bool narrow : {false, reduces(collective)}) {
            const HostCall call = host_call(ranks, cpus, {collective, bytes, narrow, is_rooted(collective) ? 0 : -1});
            EXPECT_GT(call.ways().size(), 2U)
                << name_of(collective) << ", " << bytes << " bytes, " << ranks << " ranks on " << cpus;
          }
        }
      }
    }
  }
}

const LineCosts kUnknown, kClaimed{.plain_ns = 0.13, .claimed_ns = 0.06, .streamed_ns = 0.1},
    kStreamed{.plain_ns = 0.43, .claimed_ns = 0.17, .streamed_ns = 0.1};

// A rank that begins with another manner of passing lines meets the others at the same barriers nevertheless.
TEST(WaysOfACall, HaveTheSameShapesAndTilesWhateverLinesCost) {
  const auto bare = [](std::vector<NodeChoice> ways) {
    for (NodeChoice& way : ways) way.claims_lines = way.streams_shared = way.streams = false;
    return ways;
  };
  for (const Collective collective : with_data()) {
    for (const size_t bytes : {size_t{1} << 17, size_t{64} << 20}) {
      const HostCall call = host_call(3, 4, {collective, bytes, false, is_rooted(collective) ? 0 : -1});
      EXPECT_EQ(bare(call.ways(kClaimed)), bare(call.ways(kUnknown))) << name_of(collective);
      EXPECT_EQ(bare(call.ways(kStreamed)), bare(call.ways(kUnknown))) << name_of(collective);
    }
  }
}

// An Intel processor's, and an AMD one's with cores near each other, where claimed lines cost a third, stores past the
// caches more than others, and calls of the kernel much.
const MeasuredCosts kIntel{{0.14, 0.2, 0.2}, {0.034, 0.085, 0.03, 500, 0.04}},
    kAmd{{0.13, 0.06, 0.1}, {0.014, 0.024, 0.058, 1700, 0.077}};

NodeChoice expected(const HostCall& call, const MeasuredCosts& costs, size_t unit_bytes, bool is_mapped = false) {
  const std::vector<NodeChoice> ways = call.ways(costs.lines);
  const NodeTask task = node_task(call.program.collective, call.topology.nranks(), call.program.root);
  const size_t way = expected_ways(call.topology, 0, costs, task, ways, unit_bytes, is_mapped).first;
  EXPECT_EQ(way, expected_ways(call.topology, 0, costs, task, ways, unit_bytes, is_mapped).first);
  return way < ways.size() ? ways[way] : NodeChoice();
}

TEST(ExpectedWay, FollowsWhatTheProcessorMeasured) {
  for (const Collective collective : {Collective::AllGather, Collective::AllToAll}) {
    const HostCall call = host_call(2, 2, {collective, size_t{64} << 10, false, -1});
    EXPECT_TRUE(expected(call, kIntel, size_t{32} << 10).reads) << "the kernel's copy is one copy instead of two";
    const NodeChoice here = expected(call, kAmd, size_t{32} << 10);
    EXPECT_FALSE(here.reads);
    EXPECT_TRUE(here.claims_lines);
  }
  // What fits into the last cache stays there where stores to it are cheap.
  const HostCall sum = host_call(2, 2, {Collective::AllReduce, size_t{2} << 20, false, -1});
  EXPECT_TRUE(expected(sum, kIntel, size_t{2} << 20).streams);
  EXPECT_FALSE(expected(sum, kAmd, size_t{2} << 20).streams);
  const HostCall large = host_call(2, 2, {Collective::AllReduce, size_t{256} << 20, false, -1});
  EXPECT_TRUE(expected(large, kAmd, size_t{256} << 20).streams) << "and what does not is stored past it";
}

// A broadcast to three ranks began with claimed lines, which nobody claims there, where stores past the caches take
// half.
TEST(WaysOfACall, ClaimOnlyLinesThatOneRankReads) {
  const auto claims = [](const NodeChoice& way) { return way.claims_lines; };
  for (const Collective collective : with_data()) {
    const bool is_shown_to_all = collective == Collective::Broadcast || collective == Collective::AllGather;
    for (const int ranks : {2, 4}) {
      const HostCall call = host_call(ranks, 4, {collective, size_t{1} << 20, false, is_rooted(collective) ? 0 : -1});
      const std::vector<NodeChoice> ways = call.ways(kClaimed);
      EXPECT_EQ(std::ranges::any_of(ways, claims), ranks == 2 || !is_shown_to_all) << name_of(collective) << ranks;
      if (ranks == 4 && is_shown_to_all) {
        EXPECT_EQ(ways[0].streams_shared, collective == Collective::Broadcast) << name_of(collective);
      }
    }
  }
}

// An allgather of four ranks on two cores that are far from each other began plainly, and took 1.9 times as long.
TEST(WaysOfACall, PassLinesThatAllStorePastTheCachesWhereThatIsClearlyFaster) {
  const LineCosts near{.plain_ns = 0.14, .claimed_ns = 0.062, .streamed_ns = 0.094};
  const LineCosts far{.plain_ns = 0.47, .claimed_ns = 0.17, .streamed_ns = 0.105};
  const HostCall call = host_call(4, 2, {Collective::AllGather, size_t{512} << 10, false, -1});
  EXPECT_FALSE(call.ways(near)[0].streams_shared);
  EXPECT_TRUE(call.ways(far)[0].streams_shared);
}

// Allgathers of 25 MiB in mapped buffers began through staging memory, as prices said, and took 2983 us instead of
// 2014.
TEST(ExpectedWay, ReachesWhatIsMapped) {
  for (const MeasuredCosts& costs : {kIntel, kAmd}) {
    for (const Collective collective : {Collective::AllGather, Collective::Broadcast, Collective::AllToAll}) {
      for (size_t bytes = size_t{32} << 10; bytes <= size_t{64} << 20; bytes *= 2) {
        const HostCall call = host_call(2, 2, {collective, bytes, false, is_rooted(collective) ? 0 : -1});
        EXPECT_FALSE(expected(call, costs, bytes, true).stages_mapped) << name_of(collective) << bytes;
      }
    }
  }
}

TEST(ExpectedWay, OfMoreRanksThanCoresDoesNotReadByTheKernel) {
  MeasuredCosts costs = kIntel;
  costs.lines = {};  // not measured there
  for (const size_t bytes : {size_t{1} << 17, size_t{1} << 22}) {
    const HostCall call = host_call(4, 2, {Collective::AllGather, bytes, false, -1});
    EXPECT_FALSE(expected(call, costs, bytes / 4).reads) << bytes;
  }
}

TEST(ExpectedWay, IsThePlansWhereFiguresOfTuneAreThere) {
  HostCall call = host_call(2, 2, {Collective::AllReduce, size_t{2} << 20, false, -1});
  call.topology.memory_costs.far_store_ns *= 1.01;  // measured at length
  EXPECT_TRUE(expected(call, {.own = kAmd.own}, size_t{2} << 20).streams);
}

// What ranks may reach of each other, the same or not on all of them.
std::vector<std::vector<Reach>> reaches(int ranks) {
  std::vector<std::vector<Reach>> found;
  for (const Reach& all : {Reach{}, Reach{true, false}, Reach{true, true}, Reach{false, true}})
    found.emplace_back(static_cast<size_t>(ranks), all);
  std::vector<Reach> mixed(static_cast<size_t>(ranks));
  mixed[0] = {true, true};
  mixed.back() = {true, false};
  found.push_back(mixed);
  return found;
}

Result<NodeReport> proof(const NodeTask& task, const NodeChoice& way, std::vector<Reach> reach, bool in_place) {
  const NodeShape shape = way.shape_for(reach);
  // Such inputs are overwritten while others read them, and not shown.
  if (in_place && (task.collective == Collective::AllToAll || shape.scheme == NodeScheme::OneShot)) {
    for (Reach& each : reach) each.input = false;
  }
  std::vector<NodePlan> plans;
  for (Rank rank = 0; rank < task.nranks; ++rank) plans.push_back(node_plan(task, rank, in_place, shape, reach));
  const size_t tiles = plans[0].staged ? 3 : 1;
  const std::array calls = {NodeCallPlans{task, plans, tiles}, NodeCallPlans{task, plans, 1}};
  return verify_node(calls);
}

// That of the first way on memory that nobody reaches. Returns how many were compared.
size_t expect_one_expression(const HostCall& call) {
  const int ranks = call.topology.nranks();
  const NodeTask task = node_task(call.program.collective, ranks, call.program.root);
  const Result<NodeReport> expected =
      proof(task, call.ways()[0], std::vector<Reach>(static_cast<size_t>(ranks)), false);
  EXPECT_TRUE(expected && !expected->expressions.empty());
  size_t compared = 0;
  for (const LineCosts& lines : {kUnknown, kClaimed, kStreamed}) {
    const std::vector<NodeChoice> ways = call.ways(lines);
    for (size_t way = 0; way < ways.size(); ++way) {
      for (const std::vector<Reach>& reach : reaches(ranks)) {
        for (const bool in_place : {false, true}) {
          const Result<NodeReport> report = proof(task, ways[way], reach, in_place);
          const auto where = [&] {
            return std::string(name_of(task.collective)) + " of " + std::to_string(ranks) + " ranks, way " +
                   std::to_string(way) + ", " + std::string(name_of(ways[way].shape_for(reach).scheme));
          };
          EXPECT_TRUE(report) << where() << ": " << report.error().message();
          if (report) {
            EXPECT_EQ(report->expressions, expected->expressions) << where();
          }
          ++compared;
        }
      }
    }
  }
  return compared;
}

TEST(WaysOfACall, ComputeOneExpression) {
  size_t compared = 0;
  for (int ranks = 2; ranks <= 6; ++ranks) {
    for (const Collective collective : with_data()) {
      for (const bool narrow : {false, reduces(collective)}) {
        for (const size_t bytes : {size_t{1} << 17, size_t{64} << 20}) {
          const Rank root = is_rooted(collective) ? ranks - 1 : -1;
          compared += expect_one_expression(host_call(ranks, 8, {collective, bytes, narrow, root}));
        }
      }
    }
  }
  EXPECT_GT(compared, 10'000U);
}

TEST(WaysOfACall, ByMemoryDomainsComputeOneExpressionOfTheirOwn) {
  for (const std::vector<std::vector<Rank>>& groups :
       {std::vector<std::vector<Rank>>{{0, 1}, {2, 3}}, {{0, 2, 4}, {1, 3, 5}}, {{0, 5}, {1, 4}, {2, 3}}}) {
    const auto ranks = static_cast<int>(groups.size() * groups[0].size());
    HostCall call = host_call(ranks, 8, {.bytes = size_t{1} << 20});
    const NodeTask task = node_task(Collective::AllReduce, ranks, -1);
    const std::vector<Reach> none(static_cast<size_t>(ranks));
    const Result<NodeReport> in_a_row = proof(task, call.ways()[0], none, false);
    const NodeShape shape{NodeScheme::Domains, groups};
    call.program.stages[0].node = {.staged = shape, .readable = shape, .mapped = shape};
    EXPECT_GT(call.ways().size(), 2U);
    expect_one_expression(call);
    const Result<NodeReport> by_domains = proof(task, call.ways()[0], none, false);
    ASSERT_TRUE(in_a_row && by_domains);
    EXPECT_NE(in_a_row->expressions, by_domains->expressions);
  }
}

// Of calls in a row, whatever is known of buffers when the first tile is staged.
TEST(WaysOfACall, AreProvedAsPrograms) {
  for (const int ranks : {2, 3, 4}) {
    for (const Collective collective : with_data()) {
      const HostCall call = host_call(ranks, 8, {collective, size_t{1} << 20, false, is_rooted(collective) ? 1 : -1});
      for (const NodeChoice& way : call.ways(kClaimed)) {
        Program program = call.program;
        program.stages[0].node = way;
        ASSERT_EQ(message_of(verify_program(program, {stage_plan, stage_node_plan})), "");
      }
    }
  }
}

}  // namespace
}  // namespace ccom
