// SPDX-License-Identifier: Apache-2.0
//
// Tasks whose blocks are given and got by lists: slices of hosts with unequal numbers of ranks, permuted ranks, several
// units or none. Units lie apart, and those of a vector are shorter or empty at its end.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/node/node_cases.h"

namespace ccom {
namespace {

using Lists = std::vector<std::vector<uint32_t>>;

NodeTask task_of(Collective collective, Lists gives, Lists gets, bool sums = false) {
  const auto ranks = static_cast<int>(gives.size());
  return {.collective = collective, .nranks = ranks, .sums = sums, .blocks = {std::move(gives), std::move(gets)}};
}

// Hosts of 3 and 5 ranks cut a vector into 3 slices: on the larger one two ranks own none.
std::vector<NodeTask> sliced() {
  const std::vector<uint32_t> all{0, 1, 2};
  const Lists owned{{0}, {1}, {2}, {}, {}}, whole(5, all), others{{1, 2}, {0, 2}, {0, 1}, all, all};
  return {
      task_of(Collective::ReduceScatter, whole, owned, true),
      task_of(Collective::AllGather, owned, others),
      task_of(Collective::AllGather, owned, whole),
      task_of(Collective::Broadcast, {{}, all, {}, {}, {}}, whole),
      task_of(Collective::AllReduce, whole, whole, true),
      task_of(Collective::Reduce, whole, {{}, {}, {}, all, {}}, true),
  };
}

std::vector<NodeTask> of_units() {
  Lists pairs_given, pairs_got;  // to 5 ranks of each of two hosts, local rank r collects for both of its own
  for (uint32_t rank = 0; rank < 5; ++rank) {
    pairs_given.emplace_back(10);
    std::iota(pairs_given.back().begin(), pairs_given.back().end(), rank * 10);
    pairs_got.emplace_back();
    for (uint32_t source = 0; source < 5; ++source) {
      pairs_got.back().push_back(source * 10 + rank);
      pairs_got.back().push_back(source * 10 + 5 + rank);
    }
  }
  return {
      // Ranks 6, 0, 3, 1, 4 of a job, everybody in another order.
      task_of(Collective::AllGather, {{6}, {0}, {3}, {1}, {4}},
              {{0, 1, 3, 4, 6}, {6, 4, 3, 1, 0}, {3, 6}, {}, {1, 0, 4, 6, 3}}),
      task_of(Collective::AllGather, {{0, 1}, {}, {2, 3, 4}, {7}, {5, 6}},
              {{0, 1, 2, 3, 4, 5, 6, 7}, {7, 0}, {2, 3, 4}, {5}, {}}),
      task_of(Collective::Gather, {{4, 1}, {0}, {}, {2}, {3}}, {{}, {}, {0, 1, 2, 3, 4}, {}, {}}),
      task_of(Collective::Scatter, {{}, {3, 1, 4, 0, 5, 2}, {}, {}, {}}, {{0}, {1, 2}, {3}, {}, {5, 4}}),
      task_of(Collective::AllToAll, pairs_given, pairs_got),
      // Some give a part only; of block 1 there is one contribution.
      task_of(Collective::ReduceScatter, {{0, 1}, {0}, {}, {0}, {}}, {{1}, {}, {0}, {}, {0}}, true),
  };
}

std::vector<bool> some(std::mt19937& random, unsigned mix) {  // nobody, all, or a mixture
  std::vector<bool> ranks;
  for (int rank = 0; rank < 5; ++rank) ranks.push_back(mix == 1 || (mix > 1 && random() % 2 == 0));
  return ranks;
}

std::vector<TaskCase> cases_of(const std::vector<NodeTask>& tasks, bool are_slices, const Ways& ways, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TaskCase> cases;
  for (int round = 0; round < 8; ++round) {
    for (const NodeTask& task : tasks) {
      constexpr std::array<size_t, 6> kCounts = {0, 1, 5, 700, 3001, 9001};
      TaskCase c{.task = task, .ways = ways, .count = kCounts[random() % kCounts.size()], .has_views = true};
      const size_t tail = c.count == 0 ? 0 : random() % c.count;
      if (are_slices && round % 4 == 1) c.block_elements = {c.count, c.count, tail};
      if (are_slices && round % 4 == 2) c.block_elements = {c.count, tail, 0};
      if (are_slices && round % 4 == 3) c.block_elements = {c.count, 0, 0};
      const auto mix = static_cast<unsigned>(random() % 4);
      c.in_place = some(random, static_cast<unsigned>(random() % 4));
      c.input_in_arena = some(random, mix);
      c.output_in_arena = some(random, mix);
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

struct World {
  Within within;
  bool reads;
  bool streams;
};

class NodeLists : public testing::TestWithParam<World> {};

TEST_P(NodeLists, AreFollowed) {
  const World world = GetParam();
  const Ways ways{.reads = world.reads, .streams = world.streams};
  NodeCrew crew({.ranks = 5, .within = world.within, .reads = world.reads});
  run_cases(crew, cases_of(sliced(), true, ways, 1));
  NodeCrew other({.ranks = 5, .within = world.within, .reads = world.reads});
  run_cases(other, cases_of(of_units(), false, ways, 2));
}

INSTANTIATE_TEST_SUITE_P(All, NodeLists,
                         testing::Values(World{Within::Nothing, false, false}, World{Within::Nothing, true, false},
                                         World{Within::Arenas, false, false}, World{Within::Arenas, true, true},
                                         World{Within::OneProcess, false, false}));

// Views of a plain task lead to what its lists say, as short calls as well.
TEST(NodeListCalls, PlainTasksMayHaveViews) {
  NodeCrew crew({.ranks = 3, .within = Within::Arenas});
  std::vector<TaskCase> cases;
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    if (traits.collective == Collective::SendReceive || traits.collective == Collective::Barrier) continue;
    for (const size_t count : {size_t{2}, size_t{6000}}) {
      for (const bool mapped : {false, true}) {
        cases.push_back({.task = node_task(traits.collective, 3, is_rooted(traits.collective) ? 2 : -1),
                         .count = count,
                         .has_views = true,
                         .in_place = {mapped, false, true},
                         .input_in_arena = std::vector<bool>(3, mapped),
                         .output_in_arena = std::vector<bool>(3, mapped)});
      }
    }
  }
  run_cases(crew, cases);
}

// What completes on this host is divided by the contributions of all hosts, also where one rank gives all there is.
TEST(NodeListCalls, DivideByTheContributionsOfAllHosts) {
  NodeCrew crew({.ranks = 2});
  NodeTask task = task_of(Collective::ReduceScatter, {{0, 1}, {0}}, {{1}, {0}}, true);
  for (const bool completes : {false, true}) {
    task.completes = completes;
    crew.run([&](int rank, ShmCollectives& group) {
      std::vector<float> input(6000, 12), output(3000);
      const NodeViews views{{{0, 12000}, {0}}, {{0}, {0}}, {}};
      NodeCall call;
      call.task = &crew.prepared(rank, task, choice_of({}, task, output.size() * sizeof(float)));
      call.views = &views;
      call.input = reinterpret_cast<const std::byte*>(input.data());
      call.output = reinterpret_cast<std::byte*>(output.data());
      call.count = output.size();
      call.op = ReduceOp::Avg;
      call.divide_by = 8;
      ASSERT_TRUE(group.run(call, words_of(call, completes ? 2 : 1), std::chrono::seconds(60)).is_ok());
      const float sum = rank == 0 ? 12 : 24;
      EXPECT_EQ(output, std::vector<float>(3000, completes ? sum / 8 : sum));
    });
  }
}

}  // namespace
}  // namespace ccom
