// SPDX-License-Identifier: Apache-2.0
//
// Sums of narrow floats that are rounded once wherever the ranks are: rounding "once" gives the number that is nearest
// to the float sum, "stochastic" one of its two neighbours, in the mean the sum itself. Where inputs have so few bits
// that float sums are exact in any order, results are the same on every machine; where they are not, each is a rounded
// float sum in some grouping, and determinism "full" gives the same everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "tests/api/worlds.h"

namespace ccom {
namespace {

struct Narrow {
  ccomDataType_t type;
  size_t bytes;
  int exponent_bits, mantissa_bits;
  uint32_t sign() const { return 1U << (exponent_bits + mantissa_bits); }
};
constexpr std::array kTypes = {Narrow{ccomBfloat16, 2, 8, 7}, Narrow{ccomFloat16, 2, 5, 10},
                               Narrow{ccomFloat8e4m3, 1, 4, 3}, Narrow{ccomFloat8e5m2, 1, 5, 2}};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
void PrintTo(const Narrow& narrow, std::ostream* out) { *out << narrow.type; }
const auto name_of_type = [](const auto& of) {
  const Narrow& narrow = of.param;
  return "float" + std::to_string(8 * narrow.bytes) + "e" + std::to_string(narrow.exponent_bits) + "m" +
         std::to_string(narrow.mantissa_bits);
};

// Finite numbers.
double value_of(const Narrow& narrow, uint32_t bits) {
  const int bias = (1 << (narrow.exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(bits & ((1U << narrow.mantissa_bits) - 1));
  const auto exponent = static_cast<int>(bits >> narrow.mantissa_bits & ((1U << narrow.exponent_bits) - 1));
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << narrow.mantissa_bits);
  const double value = std::ldexp(whole, std::max(exponent, 1) - bias - narrow.mantissa_bits);
  return (bits & narrow.sign()) != 0 ? -value : value;
}

// The next number away from zero, or towards it.
uint32_t beside(const Narrow& narrow, uint32_t bits, bool away) {
  if (away) return bits + 1;
  return (bits & ~narrow.sign()) == 0 ? (bits ^ narrow.sign()) + 1 : bits - 1;
}

using Bits = std::vector<uint32_t>;

// Around one, of either sign, with exponents from -4 to 2: nine of them need 24 bits at most.
Bits input_of(const Narrow& narrow, int rank, size_t count) {
  std::mt19937 random(static_cast<uint32_t>(rank) * 7919 + static_cast<uint32_t>(narrow.type));
  const uint32_t bias = (1U << (narrow.exponent_bits - 1)) - 1;
  Bits bits(count);
  for (uint32_t& each : bits) {
    const auto drawn = static_cast<uint32_t>(random());
    each = (bias + drawn % 7 - 4) << narrow.mantissa_bits | (drawn >> 8 & ((1U << narrow.mantissa_bits) - 1));
    if ((drawn >> 7 & 1) != 0) each |= narrow.sign();
  }
  return bits;
}

std::vector<unsigned char> packed(const Narrow& narrow, const Bits& bits) {
  std::vector<unsigned char> bytes(bits.size() * narrow.bytes);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bytes[i * narrow.bytes], &bits[i], narrow.bytes);
  return bytes;
}
Bits unpacked(const Narrow& narrow, const std::vector<unsigned char>& bytes) {
  Bits bits(bytes.size() / narrow.bytes);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bits[i], &bytes[i * narrow.bytes], narrow.bytes);
  return bits;
}

std::vector<double> exact_sums(const Narrow& narrow, int ranks, size_t count) {
  std::vector<double> sums(count);
  for (int rank = 0; rank < ranks; ++rank) {
    const Bits bits = input_of(narrow, rank, count);
    for (size_t i = 0; i < count; ++i) sums[i] += value_of(narrow, bits[i]);
  }
  return sums;
}

// Results of sums by all collectives, which must agree where they are rounded to nearest: they are calls of their own,
// and draw other bits.
Bits sums_in(const World& world, const Narrow& narrow, size_t count) {
  const int n = world.ranks();
  const bool is_random = std::string(world.rounding == nullptr ? "" : world.rounding) == "stochastic";
  std::vector<Bits> results(static_cast<size_t>(n));
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    const auto send = packed(narrow, input_of(narrow, rank, count));
    std::vector<unsigned char> recv(send.size()), reduced(send.size());
    ASSERT_OK(ccomAllReduce(send.data(), recv.data(), count, narrow.type, ccomSum, comm, nullptr));
    const Bits sums = results[static_cast<size_t>(rank)] = unpacked(narrow, recv);
    ASSERT_OK(ccomReduce(send.data(), reduced.data(), count, narrow.type, ccomSum, n - 1, comm, nullptr));
    EXPECT_TRUE(is_random || rank != n - 1 || reduced == recv) << world.name;
    const size_t unit = count / static_cast<size_t>(n), begin = unit * static_cast<size_t>(rank) * narrow.bytes;
    std::vector<unsigned char> part(unit * narrow.bytes);
    ASSERT_OK(ccomReduceScatter(send.data(), part.data(), unit, narrow.type, ccomSum, comm, nullptr));
    EXPECT_TRUE(is_random || std::equal(part.begin(), part.end(), recv.begin() + static_cast<std::ptrdiff_t>(begin)));
    // The last call's bits, so that they are compared between worlds, come behind those of the first.
    std::vector<unsigned char> all(part.size() * static_cast<size_t>(n));
    ASSERT_OK(ccomAllGather(part.data(), all.data(), part.size(), ccomUint8, comm, nullptr));
    const Bits scattered = unpacked(narrow, all);
    Bits& own = results[static_cast<size_t>(rank)];
    own.insert(own.end(), scattered.begin(), scattered.end());
  });
  for (const Bits& bits : results) EXPECT_TRUE(bits == results[0]) << world.name << ": ranks differ";
  return results[0];
}

std::vector<World> worlds_of_five(const char* rounding) {
  std::vector<World> worlds{{"memory", {0, 0, 0, 0, 0}},
                            {"tcp", {0, 0, 0, 0, 0}, "tcp"},
                            {"two hosts", {0, 0, 0, 1, 1}},
                            {"in turn", {0, 1, 0, 1, 0}},
                            {"three hosts", {2, 0, 0, 0, 1}},
                            {"a host each", {0, 1, 2, 3, 4}},
                            {"ring", {0, 0, 0, 0, 0}, nullptr, "ring:5"},
                            {"one_shot", {0, 0, 1, 1, 1}, nullptr, nullptr, "allreduce:one_shot,reduce:star"},
                            {"two_shot", {0, 0, 1, 1, 1}, nullptr, nullptr, "allreduce:two_shot"},
                            {"direct", {0, 0, 1, 1, 1}, nullptr, nullptr, "allreduce:hierarchical_direct"},
                            {"leaders", {0, 0, 1, 1, 1}, nullptr, nullptr, "hierarchical_leaders"},
                            {"sharded", {0, 0, 1, 1, 1}, nullptr, nullptr, "hierarchical_sharded"},
                            {"sharded in turn", {0, 1, 0, 1, 0}, nullptr, nullptr, "hierarchical_sharded"},
                            {"unequal hosts", {2, 0, 0, 0, 1}, nullptr, nullptr, "hierarchical_leaders"}};
  for (World& world : worlds) world.rounding = rounding;
  return worlds;
}

constexpr size_t kCount = 20010;  // a multiple of the ranks

// In half steps of the type, how far the result is from the sum, and how far the nearest one is.
int count_misses(const Narrow& narrow, const Bits& results, const std::vector<double>& sums) {
  int misses = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double error = std::abs(value_of(narrow, results[i]) - sums[i]);
    for (const bool away : {false, true}) {
      if (std::abs(value_of(narrow, beside(narrow, results[i], away)) - sums[i]) < error) ++misses;
    }
  }
  return misses;
}

class RoundedTypes : public testing::TestWithParam<Narrow> {};
INSTANTIATE_TEST_SUITE_P(Of, RoundedTypes, testing::ValuesIn(kTypes), name_of_type);

TEST_P(RoundedTypes, GetTheNearestNumberEverywhere) {
  const Narrow& narrow = GetParam();
  const std::vector<double> sums = exact_sums(narrow, 5, kCount);
  Bits first;
  for (const World& world : worlds_of_five("once")) {
    const Bits results = sums_in(world, narrow, kCount);
    ASSERT_EQ(results.size(), 2 * kCount);
    EXPECT_EQ(count_misses(narrow, results, sums), 0) << world.name << ", type " << narrow.type;
    if (first.empty()) first = results;
    EXPECT_TRUE(results == first) << world.name << ", type " << narrow.type;
  }
}

// What it is for: sums of hosts that are rounded first miss the nearest number.
TEST(RoundingNearest, MissesItBetweenHosts) {
  const Narrow& narrow = kTypes[0];
  const std::vector<double> sums = exact_sums(narrow, 5, kCount);
  EXPECT_GT(count_misses(narrow, sums_in({"two hosts", {0, 0, 0, 1, 1}}, narrow, kCount), sums), 100);
}

// A fifth of the sums of two steps' length fall between numbers at random: their mean error is that of chance.
TEST_P(RoundedTypes, AreStochasticallyUnbiasedAndTheSameEverywhere) {
  const Narrow& narrow = GetParam();
  const std::vector<double> sums = exact_sums(narrow, 5, kCount);
  Bits first;
  for (const World& world : worlds_of_five("stochastic")) {
    const Bits results = sums_in(world, narrow, kCount);
    double drift = 0, variance = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      const double sum = sums[i % kCount], value = value_of(narrow, results[i]);
      if (value == sum) continue;
      const bool is_beyond = std::abs(value) > std::abs(sum) || std::signbit(value) != std::signbit(sum);
      const double other = value_of(narrow, beside(narrow, results[i], !is_beyond));
      ASSERT_TRUE(std::min(value, other) < sum && sum < std::max(value, other)) << world.name << ", " << i;
      const double gap = std::abs(other - value), share = std::abs(sum - value) / gap;
      drift += (value - sum) / gap;
      variance += share * (1 - share);
    }
    EXPECT_GT(variance, 100) << "nothing was rounded, type " << narrow.type;
    EXPECT_LT(std::abs(drift), 5 * std::sqrt(variance)) << world.name << ", type " << narrow.type;
    if (first.empty()) first = results;
    EXPECT_TRUE(results == first) << world.name << ", type " << narrow.type << ": other bits than in memory";
  }
}

// Of several tiles: random bits belong to an element's place in the whole vector.
TEST(StochasticRounding, IsTheSameInLongCalls) {
  const size_t count = 3000000;
  const Narrow& narrow = kTypes[0];
  const auto in = [&](std::vector<int> hosts, const char* transport, const char* algorithm = nullptr) {
    World world{"long", std::move(hosts), transport, nullptr, algorithm};
    world.rounding = "stochastic";
    return sums_in(world, narrow, count);
  };
  const Bits memory = in({0, 0, 0}, nullptr);
  EXPECT_TRUE(memory == in({0, 0, 0}, "tcp"));
  EXPECT_TRUE(memory == in({0, 0, 1}, nullptr, "hierarchical_direct"));
  EXPECT_TRUE(memory == in({1, 0, 1}, nullptr, "hierarchical_leaders"));
  EXPECT_TRUE(in({0, 0, 0, 0}, nullptr) == in({0, 0, 1, 1}, nullptr, "hierarchical_sharded"));
}

// ---- Sums that depend on their grouping -----------------------------------------------------------------------------

constexpr size_t kWildCount = 2000;

// Of five ranks two, other ones for each element, have a large number and its negative, the others some that are about
// 2^-21 of it: what is left of those in float depends on when the large ones meet.
Bits wild_input_of(const Narrow& narrow, size_t rank) {
  std::mt19937 random(static_cast<uint32_t>(narrow.type));
  const uint32_t bias = (1U << (narrow.exponent_bits - 1)) - 1;
  const auto draw = [&](uint32_t exponent) {
    const auto drawn = static_cast<uint32_t>(random());
    const uint32_t mantissa = drawn >> 8 & ((1U << narrow.mantissa_bits) - 1);
    return (exponent + drawn % 3) << narrow.mantissa_bits | mantissa | ((drawn >> 31) != 0 ? narrow.sign() : 0);
  };
  Bits bits(kWildCount);
  for (size_t i = 0; i < kWildCount; ++i) {
    const size_t one = i % 5, other = (one + 1 + i / 5 % 4) % 5;
    const uint32_t large = draw(bias + 9);
    for (size_t each = 0; each < 5; ++each) {
      const uint32_t small = draw(bias - 12);
      if (each == rank) bits[i] = each == one ? large : each == other ? large ^ narrow.sign() : small;
    }
  }
  return bits;
}

// Of all ranks' element i in every grouping, by the set of ranks.
std::vector<float> float_sums(const std::vector<Bits>& inputs, const Narrow& narrow, size_t i) {
  std::vector<std::vector<float>> of(size_t{1} << inputs.size());
  for (size_t set = 1; set < of.size(); ++set) {
    if ((set & (set - 1)) == 0) {
      size_t rank = 0;
      while (size_t{1} << rank != set) ++rank;
      of[set] = {static_cast<float>(value_of(narrow, inputs[rank][i]))};
      continue;
    }
    for (size_t part = (set - 1) & set; part > (set ^ part); part = (part - 1) & set) {
      for (const float a : of[part]) {
        for (const float b : of[set ^ part]) of[set].push_back(a + b);
      }
    }
  }
  return of.back();
}

// To nearest, ties to even; or to one of the two neighbours.
bool is_rounded(const Narrow& narrow, uint32_t bits, double sum, bool at_random) {
  const double value = value_of(narrow, bits);
  if (value == sum) return true;
  const bool is_beyond = std::abs(value) > std::abs(sum) || std::signbit(value) != std::signbit(sum);
  const double other = value_of(narrow, beside(narrow, bits, !is_beyond));
  if (!(std::min(value, other) < sum && sum < std::max(value, other))) return false;
  const double error = std::abs(value - sum), others = std::abs(other - sum);
  return at_random || error < others || (error == others && bits % 2 == 0);
}

// Of an allreduce and one in place, a reduce-scatter and a reduce to the last rank, one after another.
Bits wild_sums_in(const World& world, const Narrow& narrow, ccomRedOp_t op) {
  const int n = world.ranks();
  const size_t unit = kWildCount / static_cast<size_t>(n);
  Bits results;
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    const auto send = packed(narrow, wild_input_of(narrow, static_cast<size_t>(rank)));
    std::vector<unsigned char> recv(send.size()), in_place(send), part(unit * narrow.bytes), reduced(send);
    const auto done = [](ccomResult_t result) { EXPECT_OK(result); };
    done(ccomAllReduce(send.data(), recv.data(), kWildCount, narrow.type, op, comm, nullptr));
    done(ccomAllReduce(in_place.data(), in_place.data(), kWildCount, narrow.type, op, comm, nullptr));
    done(ccomReduceScatter(send.data(), part.data(), unit, narrow.type, op, comm, nullptr));
    done(ccomReduce(reduced.data(), reduced.data(), kWildCount, narrow.type, op, n - 1, comm, nullptr));
    std::vector<unsigned char> all(part.size() * static_cast<size_t>(n));
    done(ccomAllGather(part.data(), all.data(), part.size(), ccomUint8, comm, nullptr));
    if (rank != n - 1) return;
    for (const auto* each : {&recv, &in_place, &all, &reduced}) {
      const Bits bits = unpacked(narrow, *each);
      results.insert(results.end(), bits.begin(), bits.end());
    }
  });
  return results;
}

// E4M3 has too few magnitudes for it.
constexpr std::array kWildTypes = {kTypes[0], kTypes[1], kTypes[3]};

class WildTypes : public testing::TestWithParam<Narrow> {};
INSTANTIATE_TEST_SUITE_P(Of, WildTypes, testing::ValuesIn(kWildTypes), name_of_type);

TEST_P(WildTypes, GetARoundedFloatSumInSomeGrouping) {
  const Narrow& narrow = GetParam();
  std::vector<Bits> inputs;
  for (size_t rank = 0; rank < 5; ++rank) inputs.push_back(wild_input_of(narrow, rank));
  std::vector<std::vector<float>> sums;
  for (size_t i = 0; i < kWildCount; ++i) sums.push_back(float_sums(inputs, narrow, i));
  EXPECT_EQ(sums[0].size(), 105U);
  Bits first;
  bool differ = false;
  for (const char* rounding : {"once", "stochastic"}) {
    const bool at_random = std::string(rounding) == "stochastic";
    if (at_random && narrow.type != kWildTypes[0].type) break;
    for (const World& world : worlds_of_five(rounding)) {
      const Bits results = wild_sums_in(world, narrow, at_random ? ccomAvg : ccomSum);
      ASSERT_EQ(results.size(), 4 * kWildCount);
      for (size_t i = 0; i < results.size(); ++i) {
        ASSERT_TRUE(std::ranges::any_of(
            sums[i % kWildCount],
            [&](float sum) { return is_rounded(narrow, results[i], at_random ? sum / 5 : sum, at_random); }))
            << world.name << ", " << rounding << ", type " << narrow.type << ": element " << i;
      }
      if (at_random) continue;
      if (first.empty()) first = results;
      differ |= results != first;
    }
  }
  EXPECT_TRUE(differ) << "type " << narrow.type << ": no sum depends on its grouping";
}

TEST(RoundingOnce, GivesTheSameEverywhereWithFullDeterminism) {
  for (const char* rounding : {"once", "stochastic"}) {
    Bits first;
    for (World world : worlds_of_five(rounding)) {
      const std::string algorithm = world.algorithm == nullptr ? "" : world.algorithm;
      if (algorithm.starts_with("hierarchical_")) continue;  // they sum on the way
      world.determinism = "full";
      const Bits results = wild_sums_in(world, kTypes[0], ccomSum);
      if (first.empty()) first = results;
      EXPECT_TRUE(results == first) << world.name << ", " << rounding;
    }
  }
}

TEST(RoundingOnce, RefusesAlgorithmsThatRoundMoreOften) {
  for (const char* rounding : {"once", "stochastic"}) {
    World world{"ring", {0, 0, 0, 1}, nullptr, nullptr, "allreduce:ring"};
    world.rounding = rounding;
    with_ranks(world, [](int, ccomComm_t comm) {
      std::vector<float> x(5000, 1);
      ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
      EXPECT_ERROR(ccomAllReduce(x.data(), x.data(), 5000, ccomBfloat16, ccomSum, comm, nullptr), ccomNotSupported,
                   "allow one rounding");
      ASSERT_OK(ccomGetErrorInfo(nullptr, &info));
      EXPECT_STREQ(info.key, "CCOM-E062");
      EXPECT_OK(ccomAllReduce(x.data(), x.data(), 5000, ccomBfloat16, ccomMax, comm, nullptr));
      EXPECT_OK(ccomAllReduce(x.data(), x.data(), 5000, ccomFloat32, ccomSum, comm, nullptr));
      EXPECT_EQ(x[4999], 4);
    });
  }
}

}  // namespace
}  // namespace ccom
