// SPDX-License-Identifier: Apache-2.0
//
// All ways of a call give the same bits and touch nothing else: every collective, type, number of ranks, kind of
// memory, roots, in place and not, lengths that are no multiple of anything, staging memory that holds something old.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <random>

#include "plan/fingerprint.h"
#include "tests/harness/effort.h"
#include "tests/node/host_ways.h"
#include "tests/node/node_crew.h"

namespace ccom {
namespace {

constexpr size_t kBank = size_t{128} << 10;                 // more than the short tiles of some ways
constexpr size_t kUnitBytes[] = {60, 9000, 70000, 300000};  // about: an odd number of elements; the last has many tiles
constexpr size_t kGuard = 192;

enum class Memory { Ordinary, Readable, Mapped, Mixed };
enum class Place { Apart, InPlace, Mixed };

struct BitsCase {
  Collective collective = Collective::AllReduce;
  bool by_domains = false;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  size_t count = 1;
  Place place = Place::Apart;
  Rank root = -1;
  Rounding rounding = Rounding::NearestEven;

  std::string text() const {
    return std::string(name_of(collective)) + (by_domains ? " by domains " : " ") + std::string(name_of(type)) + " " +
           std::string(name_of(op)) + " count " + std::to_string(count) + " root " + std::to_string(root) +
           (place == Place::Apart     ? ""
            : place == Place::InPlace ? ", in place"
                                      : ", some in place") +
           (rounding == Rounding::Stochastic ? ", stochastic" : "");
  }
};

// Numbers whose sums depend on the order, and now and then anything: infinities, NaNs, subnormals.
void fill_bits(std::byte* to, size_t count, DataType type, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> numbers(-1000, 1000);
  const size_t element = size_of(type);
  for (size_t i = 0; i < count; ++i) {
    uint64_t words[2] = {random(), seed * i};
    const float number = numbers(random);
    if (i % 16 != 0 && type == DataType::Float32) std::memcpy(words, &number, sizeof number);
    if (i % 16 != 0 && type == DataType::Float64) {
      const double wide = static_cast<double>(number) / 3;
      std::memcpy(words, &wide, sizeof wide);
    }
    if (i % 16 != 0 && type == DataType::Bfloat16) std::memcpy(words, reinterpret_cast<const char*>(&number) + 2, 2);
    if (i % 16 != 0 && type == DataType::Float16) words[0] &= 0xb3ff;
    if (type == DataType::Bool) words[0] &= 0x01;
    std::memcpy(to + i * element, words, element);
  }
}

// Where a rank's input and output lie in its memory, in units; in place a block that it gives and gets has one address.
struct Places {
  size_t input = 0, output = 0, units = 0;
  bool in_place = false;

  Places(const NodeTask& task, int rank, bool wants_in_place) {
    const auto& gives = task.blocks.gives[static_cast<size_t>(rank)];
    const auto& gets = task.blocks.gets[static_cast<size_t>(rank)];
    const auto shared = std::ranges::find_first_of(gives, gets);
    in_place = wants_in_place && shared != gives.end();
    if (!in_place) {
      output = gives.size() + 1;  // one between them that nobody touches
    } else if (task.collective != Collective::AllToAll) {
      const auto i = static_cast<size_t>(shared - gives.begin());
      const auto j = static_cast<size_t>(std::ranges::find(gets, *shared) - gets.begin());
      input = std::max(i, j) - i;
      output = std::max(i, j) - j;
    }
    units = std::max(input + gives.size(), output + gets.size());
  }
};

class BitsHost {
 public:
  BitsHost(int ranks, Memory memory)
      : memory_(memory),
        crew_({.ranks = ranks,
               .within = memory == Memory::Mapped || memory == Memory::Mixed ? Within::Arenas : Within::Nothing,
               .bank_bytes = kBank,
               .small_bytes = 0,
               .reads = memory == Memory::Readable}),
        together_(ranks) {}

  void run(const BitsCase& c, const std::vector<NodeChoice>& ways) {
    const NodeTask task = node_task(c.collective, crew_.ranks(), c.root);
    const uint64_t first_call = calls_ + 1;
    calls_ += ways.size();
    crew_.run([&](int rank, ShmCollectives& group) { run_rank(rank, group, c, task, ways, first_call); });
  }
  size_t calls() const { return calls_; }

 private:
  void run_rank(int rank, ShmCollectives& group, const BitsCase& c, const NodeTask& task,
                const std::vector<NodeChoice>& ways, uint64_t first_call) {
    const Places places(task, rank, c.place == Place::InPlace || (c.place == Place::Mixed && rank % 2 == 0));
    const size_t unit = c.count * size_of(c.type), shift = kGuard + (c.count / 2 % 3) * size_of(c.type);
    const size_t size = shift + places.units * unit + kGuard;
    const size_t results = task.blocks.gets[static_cast<size_t>(rank)].size() * unit;
    const bool is_mapped = memory_ == Memory::Mapped || (memory_ == Memory::Mixed && rank != 1);
    std::vector<std::byte> own(is_mapped ? 0 : size), before(size, std::byte{0xee}), expected;
    std::byte* const memory = is_mapped ? static_cast<std::byte*>(*crew_.arena().allocate(size)) : own.data();
    const size_t input = shift + places.input * unit, output = shift + places.output * unit;
    const auto seed = static_cast<uint64_t>(rank) + 1;
    fill_bits(before.data() + input, task.blocks.gives[static_cast<size_t>(rank)].size() * c.count, c.type, seed);
    for (size_t way = 0; way < ways.size(); ++way) {
      std::memcpy(memory, before.data(), size);
      const std::span<std::byte> staging = crew_.staging_of(rank);
      std::memset(staging.data(), way % 2 == 0 ? 0xff : 0x3c, staging.size());
      PreparedTask prepared(task, {ways[way]}, rank);
      const NodeCall call{.task = &prepared,
                          .input = memory + input,
                          .output = memory + output,
                          .count = c.count,
                          .type = c.type,
                          .op = c.op,
                          .divide_by = static_cast<uint32_t>(crew_.ranks()),
                          .in_place = places.in_place,
                          .rounding = c.rounding,
                          .seed = 5};
      const Status status = group.run(call, words_of(call, first_call + way), std::chrono::seconds(30));
      EXPECT_TRUE(status.is_ok()) << status.message();
      if (expected.empty()) expected.assign(memory + output, memory + output + results);
      const auto after = [&] { return c.text() + ", rank " + std::to_string(rank) + ", way " + std::to_string(way); };
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory + output)) << after();
      std::memcpy(memory + output, before.data() + output, results);
      EXPECT_EQ(std::memcmp(memory, before.data(), size), 0) << after() << ": wrote beside its output";
      together_.arrive_and_wait();  // nobody is at this rank's memory any more
    }
    if (is_mapped) {
      EXPECT_TRUE(crew_.arena().free(memory).is_ok());
    }
  }

  const Memory memory_;
  NodeCrew crew_;
  std::barrier<> together_;
  uint64_t calls_ = 0;
};

std::vector<DataType> all_types() {
  std::vector<DataType> types;
  for (int value = 0; value <= static_cast<int>(DataType::Complex128); ++value) {
    const auto type = static_cast<DataType>(value);
    if (size_of(type) > 0) types.push_back(type);
  }
  return types;
}

// Sum and Avg of every type that has them, and another operator by turns.
std::vector<ReduceOp> operators(Collective collective, DataType type, size_t turn) {
  if (!reduces(collective)) return {ReduceOp::Sum};
  constexpr ReduceOp kOthers[] = {ReduceOp::Prod, ReduceOp::Max,  ReduceOp::Min,  ReduceOp::Band,
                                  ReduceOp::Bor,  ReduceOp::Bxor, ReduceOp::Land, ReduceOp::Lor};
  std::vector<ReduceOp> found;
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, kOthers[turn % std::size(kOthers)]}) {
    if (is_legal(type, op)) found.push_back(op);
  }
  return found;
}

// Calls visit(case) for all cases of a number of ranks; the ways of one without a root are those of all roots.
template <typename Visit>
void for_each_case(int ranks, Collective collective, Visit visit) {
  size_t turn = 0;
  for (const DataType type : all_types()) {
    for (const size_t bytes : kUnitBytes) {
      for (const Place place : {Place::Apart, Place::InPlace, Place::Mixed}) {
        for (const ReduceOp op : operators(collective, type, ++turn)) {
          const uint64_t chance = mix(turn * 31 + static_cast<uint64_t>(op));
          BitsCase c{
              .collective = collective, .type = type, .op = op, .count = bytes / size_of(type) | 1, .place = place};
          if (is_rooted(collective)) c.root = static_cast<Rank>(chance % static_cast<uint64_t>(ranks));
          if (is_narrow_float(type) && chance / 64 % 2 == 0) c.rounding = Rounding::Stochastic;
          visit(c);
        }
      }
    }
  }
}

// One in so many of the cases that CCOM_TEST_SEED draws, where every load and store is checked.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kOneIn = 20;
#else
constexpr uint64_t kOneIn = 1;
#endif

struct Calls {
  int ranks;
  Memory memory;
  Collective collective;
  bool by_domains;
  size_t element;  // of its types; 8: and more

  bool has(DataType type) const { return std::min(size_of(type), size_t{8}) == element; }
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
void PrintTo(const Calls& calls, std::ostream* out) { *out << name_of(calls.collective); }

std::vector<Calls> all_calls() {
  std::vector<Calls> all;
  for (const int ranks : {2, 3, 4}) {
    for (const Memory memory : {Memory::Ordinary, Memory::Readable, Memory::Mapped, Memory::Mixed}) {
      for (const size_t element : {1, 2, 4, 8}) {
        for (const CollectiveTraits& traits : kCollectiveTraits) {
          const bool has_ways =
              traits.collective != Collective::Barrier && traits.collective != Collective::SendReceive;
          if (has_ways) all.push_back({ranks, memory, traits.collective, false, element});
        }
        if (ranks == 4) all.push_back({ranks, memory, Collective::AllReduce, true, element});
      }
    }
  }
  return all;
}

std::string name_of_calls(const testing::TestParamInfo<Calls>& of) {
  constexpr const char* kMemories[] = {"ordinary", "readable", "mapped", "mixed"};
  const Calls& calls = of.param;
  return std::string(name_of(calls.collective)) + (calls.by_domains ? "_by_domains_" : "_") +
         kMemories[static_cast<size_t>(calls.memory)] + "_" + std::to_string(calls.ranks) + "_ranks_" +
         std::to_string(8 * calls.element) + "_bits";
}

class Ways : public testing::TestWithParam<Calls> {};
INSTANTIATE_TEST_SUITE_P(Of, Ways, testing::ValuesIn(all_calls()), name_of_calls);

TEST_P(Ways, GiveTheSameBits) {
  const Calls& calls = GetParam();
  const std::string machine = "host:" + std::to_string(calls.ranks);
  const std::vector<NodeChoice> ways = calls.by_domains ? ways_by_domains(machine, {{0, 2}, {1, 3}})
                                                        : ways_of(machine, calls.collective, size_t{1} << 20);
  ASSERT_GT(ways.size(), 2U);
  const uint64_t seed = kOneIn == 1 ? 0 : test_seed();
  uint64_t number = seed;
  size_t cases = 0;
  BitsHost host(calls.ranks, calls.memory);
  for_each_case(calls.ranks, calls.collective, [&](BitsCase c) {
    if (!calls.has(c.type) || mix(++number) % kOneIn != 0 || HasFailure()) return;
    c.by_domains = calls.by_domains;
    SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(seed) + ": " + c.text());
    host.run(c, ways);
    ++cases;
  });
  std::printf("%zu cases, %zu calls\n", cases, host.calls());
  EXPECT_GT(cases, 0U);
}

}  // namespace
}  // namespace ccom
