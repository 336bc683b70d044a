// SPDX-License-Identifier: Apache-2.0
//
// Every collective, in and out of place, with every mix of buffers that can and cannot be reached, over many tiles.
#include <gtest/gtest.h>

#include <random>

#include "tests/node/node_cases.h"

namespace ccom {
namespace {

constexpr std::array kCollectives = {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
                                     Collective::Broadcast, Collective::Reduce,    Collective::AllToAll,
                                     Collective::Gather,    Collective::Scatter,   Collective::Barrier};

// A row of calls that all ranks know.
std::vector<TaskCase> random_cases(int nranks, int number, uint32_t seed, const Ways& ways) {
  std::mt19937 random(seed);
  constexpr std::array<size_t, 10> kCounts = {0, 1, 2, 13, 255, 257, 1024, 3000, 9001, 30011};
  std::vector<TaskCase> cases;
  for (int i = 0; i < number; ++i) {
    const Collective collective = kCollectives[random() % kCollectives.size()];
    const auto root = static_cast<Rank>(random() % static_cast<unsigned>(nranks));
    TaskCase c{.task = node_task(collective, nranks, is_rooted(collective) ? root : -1),
               .ways = ways,
               .count = kCounts[random() % kCounts.size()]};
    if (collective == Collective::Barrier) c.count = 0;
    const bool in_place = random() % 2 == 0;
    const unsigned mix = random() % 4;  // nobody, all, and mixtures
    for (int r = 0; r < nranks; ++r) {
      c.in_place.push_back(in_place);
      c.input_in_arena.push_back(mix == 1 || (mix > 1 && random() % 2 == 0));
      c.output_in_arena.push_back(mix == 1 || (mix > 1 && random() % 2 == 0));
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

void run_random(const NodeCrew::Settings& settings, int number, uint32_t seed, const Ways& ways = {}) {
  NodeCrew crew(settings);
  run_cases(crew, random_cases(settings.ranks, number, seed, ways));
}

class NodeCollectives : public testing::TestWithParam<std::tuple<Within, int>> {};

TEST_P(NodeCollectives, AreRightInAnyOrderWithAnyMixOfBuffers) {
  const auto [within, ranks] = GetParam();
  run_random({.ranks = ranks, .within = within}, 150, static_cast<uint32_t>(ranks) * 31);
}

INSTANTIATE_TEST_SUITE_P(All, NodeCollectives,
                         testing::Combine(testing::Values(Within::Nothing, Within::Arenas, Within::OneProcess),
                                          testing::Values(2, 3, 4, 7)));

TEST(ShmCollectives, ManyRanksUseGroupsForTinyCalls) {
  const Ways ways{.groups = {{0, 1, 2, 3, 4, 5}, {6, 7, 8}, {9, 10, 11, 12, 13, 14, 15, 16}}};
  run_random({.ranks = 17, .within = Within::Arenas, .small_bytes = 0}, 60, 5, ways);
}

// Also where a part of a tile that passes through a result is as long as its bank.
TEST(ShmCollectives, MemoryDomainsExchangeTheirSums) {
  const Ways ways{.one_shot_bytes = 2048, .domains = {{0, 2, 4}, {1, 3, 5}}};
  for (const Within within : {Within::Nothing, Within::Arenas, Within::OneProcess}) {
    run_random({.ranks = 6, .within = within}, 80, 6, ways);
    run_random({.ranks = 6, .within = within, .bank_bytes = size_t{64} << 10}, 80, 6, ways);
  }
}

TEST(ShmCollectives, StreamPastTheCaches) {
  for (const Within within : {Within::Nothing, Within::Arenas}) {
    run_random({.ranks = 3, .within = within}, 80, 8, {.one_shot_bytes = 2048, .streams = true});
  }
}

TEST(ShmCollectives, ReadWhatIsNotMapped) {
  for (const int ranks : {2, 3, 5}) {
    for (const bool pulls : {false, true}) {
      for (const Within within : {Within::Nothing, Within::Arenas}) {
        run_random({.ranks = ranks, .within = within, .reads = true}, 100, 12, {.pulls = pulls, .reads = true});
      }
    }
  }
}

// The choice says that buffers are to be read, but the kernel does not allow it.
TEST(ShmCollectives, StageWhatCannotBeRead) {
  for (const Within within : {Within::Nothing, Within::Arenas}) {
    run_random({.ranks = 3, .within = within}, 100, 13, {.pulls = true, .reads = true});
  }
}

TEST(ShmCollectives, CutWhatTheyStageAsLongAsTheyAreTold) {
  for (const size_t tile_bytes : {size_t{1}, size_t{3000}}) {
    NodeCrew crew({.ranks = 3});
    std::vector<TaskCase> cases;
    for (const Collective collective : kCollectives) {
      cases.push_back({.task = node_task(collective, 3, is_rooted(collective) ? 1 : -1),
                       .ways = {.tile_bytes = tile_bytes},
                       .count = size_t{collective == Collective::Barrier ? 0U : 1300U},
                       .in_place = std::vector<bool>(3),
                       .input_in_arena = std::vector<bool>(3),
                       .output_in_arena = std::vector<bool>(3)});
    }
    run_cases(crew, cases);
  }
}

TEST(ShmCollectives, NeedNoAsymmetricFence) {
  run_random({.ranks = 4, .within = Within::Nothing, .asymmetric = false}, 60, 9);
}

TEST(ShmCollectives, RoundNarrowSumsOnce) {
  NodeCrew crew({.ranks = 4, .small_bytes = 16});
  const NodeTask task = node_task(Collective::AllReduce, 4, -1);
  // 256 + 1 + 1 + 1 in bfloat16: any rounding on the way loses the ones; once gives 260 (259 is not representable).
  for (const size_t count : {size_t{1}, size_t{20}, size_t{5000}}) {
    crew.run([&](int rank, ShmCollectives& group) {
      const uint16_t mine = rank == 0 ? 0x4380 : 0x3f80;
      std::vector<uint16_t> data(count, mine);
      PreparedTask& prepared = crew.prepared(rank, task, choice_of({.one_shot_bytes = 64}, task, count * sizeof mine));
      const NodeCall call = in_place_call(prepared, data, DataType::Bfloat16);
      ASSERT_TRUE(group.run(call, words_of(call, count), std::chrono::seconds(10)).is_ok());
      for (const uint16_t bits : data) ASSERT_EQ(bits, 0x4382);
    });
  }
}

// Whatever the way: lines, mails, groups, staging memory in tiles, buffers in reach. The random bits belong to elements
// of the whole vector.
TEST(ShmCollectives, RoundAtRandomAsOneReducerWould) {
  constexpr size_t kRanks = 4;
  constexpr uint64_t kSeed = 99;
  const Ways plain{}, grouped{.groups = {{0, 1}, {2, 3}}}, pulls{.one_shot_bytes = 0, .pulls = true, .reads = true};
  std::mt19937 random(1);
  for (const Ways& ways : {plain, grouped, pulls}) {
    for (const Within within : {Within::Nothing, Within::OneProcess}) {
      NodeCrew crew({.ranks = kRanks,
                     .within = within,
                     .small_bytes = ways.groups.empty() ? size_t{1024} : 0,
                     .reads = ways.reads});
      uint64_t number = 0;
      for (const size_t part : {size_t{1}, size_t{9}, size_t{100}, size_t{300}, size_t{20011}}) {
        const size_t count = part * kRanks;
        std::array<std::vector<uint16_t>, kRanks> inputs;
        std::vector<const std::byte*> sources;
        for (std::vector<uint16_t>& input : inputs) {
          for (size_t i = 0; i < count; ++i) input.push_back(static_cast<uint16_t>(0x3f00 + random() % 0x200));
          sources.push_back(reinterpret_cast<const std::byte*>(input.data()));
        }
        const Reduction reduction{DataType::Bfloat16, ReduceOp::Sum, 0, Rounding::Stochastic, kSeed};
        std::vector<uint16_t> want(count);
        reduce(reduction, sources, reinterpret_cast<std::byte*>(want.data()), count);
        for (const Collective collective : {Collective::AllReduce, Collective::Reduce, Collective::ReduceScatter}) {
          ++number;
          const NodeTask task = node_task(collective, kRanks, collective == Collective::Reduce ? 1 : -1);
          crew.run([&](int rank, ShmCollectives& group) {
            const auto self = static_cast<size_t>(rank);
            const bool scatters = collective == Collective::ReduceScatter;
            std::vector<uint16_t> output(scatters ? part : count);
            NodeCall call;
            call.input = sources[self];
            call.output = reinterpret_cast<std::byte*>(output.data());
            call.count = output.size();
            call.task = &crew.prepared(rank, task, choice_of(ways, task, call.count * sizeof(uint16_t)));
            call.type = DataType::Bfloat16;
            call.rounding = Rounding::Stochastic;
            call.seed = kSeed;
            ASSERT_TRUE(group.run(call, words_of(call, number), std::chrono::seconds(30)).is_ok());
            if (collective == Collective::Reduce && rank != 1) return;
            const uint16_t* const begin = want.data() + (scatters ? self * part : 0);
            EXPECT_TRUE(std::equal(output.begin(), output.end(), begin)) << name_of(collective) << " " << part;
          });
        }
      }
    }
  }
}

TEST(ShmCollectives, AverageAndNormalise) {
  NodeCrew crew({.ranks = 3});
  const NodeTask task = node_task(Collective::AllReduce, 3, -1);
  for (const size_t count : {size_t{3}, size_t{9000}}) {
    crew.run([&](int rank, ShmCollectives& group) {
      std::vector<int32_t> data(count, rank == 0 ? -7 : -1);
      PreparedTask& prepared = crew.prepared(rank, task, choice_of({}, task, count * sizeof(int32_t)));
      NodeCall call = in_place_call(prepared, data, DataType::Int32);
      call.op = ReduceOp::Avg;
      call.divide_by = 3;
      ASSERT_TRUE(group.run(call, words_of(call, 1), std::chrono::seconds(10)).is_ok());
      for (const int32_t x : data) ASSERT_EQ(x, -3);
      std::ranges::fill(data, rank + 2);
      call.op = ReduceOp::Land;
      ASSERT_TRUE(group.run(call, words_of(call, 2), std::chrono::seconds(10)).is_ok());
      for (const int32_t x : data) ASSERT_EQ(x, 1);
    });
  }
}

}  // namespace
}  // namespace ccom
