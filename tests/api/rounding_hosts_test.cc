// SPDX-License-Identifier: Apache-2.0
//
// Sums of narrow floats that are rounded once wherever the ranks are: rounding "once" gives the number that is nearest
// to the exact sum, "stochastic" one of its two neighbours, in the mean the sum itself, and the same one on every
// machine. Inputs have so few bits that float sums are exact in any order.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

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
  run_in(world, [&](int rank, ccomComm_t comm) {
    const auto send = packed(narrow, input_of(narrow, rank, count));
    std::vector<unsigned char> recv(send.size()), reduced(send.size());
    ASSERT_EQ(ccomAllReduce(send.data(), recv.data(), count, narrow.type, ccomSum, comm, nullptr), ccomSuccess)
        << ccomGetLastError(nullptr);
    const Bits sums = results[static_cast<size_t>(rank)] = unpacked(narrow, recv);
    ASSERT_EQ(ccomReduce(send.data(), reduced.data(), count, narrow.type, ccomSum, n - 1, comm, nullptr), ccomSuccess)
        << ccomGetLastError(nullptr);
    EXPECT_TRUE(is_random || rank != n - 1 || reduced == recv) << world.name;
    const size_t unit = count / static_cast<size_t>(n), begin = unit * static_cast<size_t>(rank) * narrow.bytes;
    std::vector<unsigned char> part(unit * narrow.bytes);
    ASSERT_EQ(ccomReduceScatter(send.data(), part.data(), unit, narrow.type, ccomSum, comm, nullptr), ccomSuccess)
        << ccomGetLastError(nullptr);
    EXPECT_TRUE(is_random || std::equal(part.begin(), part.end(), recv.begin() + static_cast<std::ptrdiff_t>(begin)));
    // The last call's bits, so that they are compared between worlds, come behind those of the first.
    std::vector<unsigned char> all(part.size() * static_cast<size_t>(n));
    ASSERT_EQ(ccomAllGather(part.data(), all.data(), part.size(), ccomUint8, comm, nullptr), ccomSuccess);
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
                            {"two_shot", {0, 0, 1, 1, 1}, nullptr, nullptr, "allreduce:two_shot"}};
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

TEST(RoundingOnce, GivesTheNearestNumberEverywhere) {
  for (const Narrow& narrow : kTypes) {
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
}

// What it is for: sums of hosts that are rounded first miss the nearest number.
TEST(RoundingNearest, MissesItBetweenHosts) {
  const Narrow& narrow = kTypes[0];
  const std::vector<double> sums = exact_sums(narrow, 5, kCount);
  EXPECT_GT(count_misses(narrow, sums_in({"two hosts", {0, 0, 0, 1, 1}}, narrow, kCount), sums), 100);
}

// A fifth of the sums of two steps' length fall between numbers at random: their mean error is that of chance.
TEST(StochasticRounding, IsUnbiasedAndTheSameEverywhere) {
  for (const Narrow& narrow : kTypes) {
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
}

// Of several tiles: random bits belong to an element's place in the whole vector.
TEST(StochasticRounding, IsTheSameInLongCalls) {
  const size_t count = 3000000;
  const Narrow& narrow = kTypes[0];
  const auto in = [&](std::vector<int> hosts, const char* transport) {
    World world{"long", std::move(hosts), transport};
    world.rounding = "stochastic";
    return sums_in(world, narrow, count);
  };
  const Bits memory = in({0, 0, 0}, nullptr);
  EXPECT_TRUE(memory == in({0, 0, 0}, "tcp"));
  EXPECT_TRUE(memory == in({0, 0, 1}, nullptr));
  EXPECT_TRUE(memory == in({1, 0, 1}, nullptr));
}

TEST(RoundingOnce, RefusesAlgorithmsThatRoundMoreOften) {
  for (const char* rounding : {"once", "stochastic"}) {
    World world{"ring", {0, 0, 0, 1}, nullptr, nullptr, "allreduce:ring"};
    world.rounding = rounding;
    run_in(world, [](int, ccomComm_t comm) {
      std::vector<float> x(5000, 1);
      ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
      EXPECT_EQ(ccomAllReduce(x.data(), x.data(), 5000, ccomBfloat16, ccomSum, comm, nullptr), ccomNotSupported);
      EXPECT_NE(std::string(ccomGetLastError(nullptr)).find("allow one rounding"), std::string::npos)
          << ccomGetLastError(nullptr);
      ASSERT_EQ(ccomGetErrorInfo(nullptr, &info), ccomSuccess);
      EXPECT_STREQ(info.key, "CCOM-E062");
      EXPECT_EQ(ccomAllReduce(x.data(), x.data(), 5000, ccomBfloat16, ccomMax, comm, nullptr), ccomSuccess);
      EXPECT_EQ(ccomAllReduce(x.data(), x.data(), 5000, ccomFloat32, ccomSum, comm, nullptr), ccomSuccess);
      EXPECT_EQ(x[4999], 4);
    });
  }
}

}  // namespace
}  // namespace ccom
