// SPDX-License-Identifier: Apache-2.0
//
// Small calls have a function of their own. Here it is compared with the plans that it stands for: bit for bit. In
// calls of a root, ranks go ahead of others.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/collective.h"
#include "tests/node/node_cases.h"

namespace ccom {
namespace {

constexpr std::array kTypes = {DataType::Int8,       DataType::Uint8,      DataType::Int16,   DataType::Uint16,
                               DataType::Int32,      DataType::Uint32,     DataType::Int64,   DataType::Uint64,
                               DataType::Float16,    DataType::Bfloat16,   DataType::Float32, DataType::Float64,
                               DataType::Float8e4m3, DataType::Float8e5m2, DataType::Bool,    DataType::Complex64,
                               DataType::Complex128};
constexpr std::array kOps = {ReduceOp::Sum,  ReduceOp::Prod, ReduceOp::Max,  ReduceOp::Min,  ReduceOp::Avg,
                             ReduceOp::Band, ReduceOp::Bor,  ReduceOp::Bxor, ReduceOp::Land, ReduceOp::Lor};

struct SmallCall {
  Collective collective;
  DataType type;
  ReduceOp op;
  size_t count;
  bool in_place;
  Rounding rounding;
  Rank root;
  bool is_late;  // some ranks pause before it
};

std::vector<SmallCall> all_calls(int ranks) {
  std::vector<SmallCall> calls;
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    if (traits.collective == Collective::SendReceive) continue;
    const bool is_barrier = traits.collective == Collective::Barrier;
    for (const DataType type : traits.reduces ? std::span<const DataType>(kTypes) : std::span(kTypes).first(1)) {
      for (const ReduceOp op : traits.reduces ? std::span<const ReduceOp>(kOps) : std::span(kOps).first(1)) {
        if (traits.reduces && !is_legal(type, op)) continue;
        for (const bool in_place : {false, true}) {
          for (const Rounding rounding : {Rounding::NearestEven, Rounding::Stochastic}) {
            for (const size_t bytes : {size_t{16}, size_t{176}}) {
              const size_t count = is_barrier ? 0 : bytes / static_cast<size_t>(ranks) / size_of(type) + 1;
              calls.push_back({traits.collective, type, op, count, in_place, rounding, ranks - 1, false});
            }
          }
        }
      }
    }
  }
  return calls;
}

// Of all collectives, small and larger than small, by roots that change, most of them calls of a root.
std::vector<SmallCall> random_calls(int ranks, uint32_t seed) {
  constexpr std::array kKinds = {Collective::Broadcast, Collective::Broadcast, Collective::Scatter,
                                 Collective::Gather,    Collective::Reduce,    Collective::AllReduce};
  constexpr std::array<size_t, 9> kShown = {8, 48, 52, 1024, 1028, 5000, 8192, 40000, 65536};
  std::mt19937 random(seed);
  std::vector<SmallCall> calls(ranks > 8 ? 200 : 1500);
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool repeats = i > 0 && random() % 4 != 0;  // rows of calls of one kind and root
    const Collective collective = repeats ? calls[i - 1].collective : kKinds[random() % kKinds.size()];
    const Rank root = repeats ? calls[i - 1].root : static_cast<Rank>(random()) % ranks;
    const size_t units = input_units(collective, ranks, true);
    calls[i] = {collective, DataType::Int32,       ReduceOp::Sum,  kShown[random() % kShown.size()] / 4 / units,
                false,      Rounding::NearestEven, std::abs(root), random() % 8 == 0};
  }
  return calls;
}

using Memory = std::vector<std::byte>;

// What a rank's memory holds after each call.
std::vector<Memory> results_of(NodeCrew& crew, int rank, const std::vector<SmallCall>& calls) {
  std::vector<Memory> results;
  std::mt19937 random(static_cast<uint32_t>(rank));
  const int ranks = crew.ranks();
  for (const SmallCall& small : calls) {
    if (small.is_late && (results.size() + static_cast<size_t>(rank)) % 3 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    const Rank root = is_rooted(small.collective) ? small.root : -1;
    const bool is_root = rank == root;
    const NodeTask task = node_task(small.collective, ranks, root);
    const size_t unit = small.count * size_of(small.type);
    const size_t inputs = input_units(small.collective, ranks, is_root);
    const size_t outputs = output_units(small.collective, ranks, is_root);
    Memory memory((inputs + outputs) * unit);
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random() % (small.type == DataType::Bool ? 2 : 256));
    NodeCall call;
    NodeChoice choice{.asks = false};
    const bool is_vector = small.collective == Collective::AllReduce || small.collective == Collective::Reduce;
    choice.staged = {is_vector ? NodeScheme::OneShot : NodeScheme::Direct, {}, is_vector};
    call.task = &crew.prepared(rank, task, choice);
    call.input = memory.data();
    call.output = memory.data() + inputs * unit;
    if (small.in_place && has_in_place(small.collective) && (!is_rooted(small.collective) || is_root)) {
      const int64_t shift = in_place_shift(small.collective, rank) * static_cast<int64_t>(unit);
      call.input = memory.data() + std::max<int64_t>(shift, 0);
      call.output = memory.data() + std::max<int64_t>(-shift, 0);
      call.in_place = true;
    }
    call.count = small.count;
    call.type = small.type;
    call.op = small.op;
    call.divide_by = static_cast<uint32_t>(ranks);
    call.rounding = small.rounding;
    call.seed = 7 + results.size();
    const Status status = crew.group(rank).run(call, words_of(call, results.size()), std::chrono::seconds(60));
    EXPECT_TRUE(status.is_ok()) << status.message();
    results.push_back(std::move(memory));
  }
  return results;
}

class SmallCalls : public testing::TestWithParam<int> {};

// By rank: of calls of up to so many bytes that are small.
std::vector<std::vector<Memory>> results_of_all(int ranks, size_t small_bytes, const std::vector<SmallCall>& calls) {
  std::vector<std::vector<Memory>> results(static_cast<size_t>(ranks));
  NodeCrew crew({.ranks = ranks, .bank_bytes = size_t{256} << 10, .small_bytes = small_bytes});
  crew.run([&](int rank, ShmCollectives&) { results[static_cast<size_t>(rank)] = results_of(crew, rank, calls); });
  return results;
}

TEST_P(SmallCalls, AreWhatTheirPlansAre) {
  const int ranks = GetParam();
  std::vector<SmallCall> calls = all_calls(ranks);
  if (ranks > 8) std::erase_if(calls, [](const SmallCall& call) { return call.type > DataType::Int32; });
  const auto is = results_of_all(ranks, 1024, calls), wanted = results_of_all(ranks, 0, calls);
  for (size_t rank = 0; rank < is.size(); ++rank) {
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(is[rank][i], wanted[rank][i])
          << name_of(calls[i].collective) << " of " << name_of(calls[i].type) << ", " << name_of(calls[i].op) << ", "
          << calls[i].count << " elements, rank " << rank << (calls[i].in_place ? ", in place" : "");
    }
  }
}

TEST_P(SmallCalls, OfRanksAheadOfOthersAreWhatTheirPlansAre) {
  const int ranks = GetParam();
  const std::vector<SmallCall> calls = random_calls(ranks, testing::UnitTest::GetInstance()->random_seed() + 1);
  const auto is = results_of_all(ranks, size_t{40000}, calls), wanted = results_of_all(ranks, 0, calls);
  for (size_t rank = 0; rank < is.size(); ++rank) {
    const auto differs = std::ranges::mismatch(is[rank], wanted[rank]).in1 - is[rank].begin();
    EXPECT_EQ(static_cast<size_t>(differs), calls.size())
        << name_of(calls[static_cast<size_t>(differs)].collective) << ", rank " << rank;
  }
}

// With more ranks than the small path keeps addresses of on the stack, too.
INSTANTIATE_TEST_SUITE_P(All, SmallCalls, testing::Values(2, 3, 5, 34));

}  // namespace
}  // namespace ccom
