// SPDX-License-Identifier: Apache-2.0
//
// Sums that cross hosts as blocks of 8 bits: within the error bound of ccomConfig_t.wire, equal on all ranks, on hosts
// of many forms; calls that it has no effect on have the bits that they have without it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/api/worlds.h"

namespace ccom {
namespace {

constexpr size_t kCount = 30011;    // the last blocks are not full; beyond 16 KiB in bfloat16 too
constexpr size_t kNeighbours = 63;  // the other elements of a block are at most so far away

std::vector<World> worlds_over_hosts(const char* wire) {
  std::vector<World> worlds{{"2 x 2", {0, 0, 1, 1}},
                            {"3, 1, 2", {0, 0, 0, 1, 2, 2}},
                            {"in turn", {0, 1, 0, 1, 0}},
                            {"three hosts in turn", {0, 1, 2, 0, 1, 2}},
                            {"2 x 1", {0, 1}},
                            {"2 x 1, tcp alone", {0, 1}, "tcp"},
                            {"4 x 1, tcp alone", {0, 1, 2, 3}, "tcp"},
                            {"leaders", {0, 0, 1, 1}, nullptr, nullptr, "allreduce:hierarchical_leaders"}};
  for (World& world : worlds) world.wire = wire;
  return worlds;
}

// As stored: float32 or bfloat16, of which it has no more bits.
float as_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= 0xffff0000;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

struct Numbers {
  ccomDataType_t type;
  size_t bytes() const { return type == ccomFloat32 ? 4 : 2; }
  // Of magnitudes that differ by up to 2^12 within a block.
  std::vector<float> of(int rank, size_t count) const {
    std::mt19937 random(static_cast<uint32_t>(rank) * 7919 + 1);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(count);
    for (float& each : numbers) each = as_bfloat16(std::ldexp(normal(random), -static_cast<int>(random() % 12)));
    return numbers;
  }
  std::vector<unsigned char> packed(const std::vector<float>& numbers) const {
    std::vector<unsigned char> memory(numbers.size() * bytes());
    for (size_t i = 0; i < numbers.size(); ++i)
      std::memcpy(&memory[i * bytes()], reinterpret_cast<const char*>(&numbers[i]) + 4 - bytes(), bytes());
    return memory;
  }
  std::vector<float> unpacked(const std::vector<unsigned char>& memory) const {
    std::vector<float> numbers(memory.size() / bytes());
    for (size_t i = 0; i < numbers.size(); ++i)
      std::memcpy(reinterpret_cast<char*>(&numbers[i]) + 4 - bytes(), &memory[i * bytes()], bytes());
    return numbers;
  }
};

// All ranks' results, which are equal.
std::vector<float> sum_in(const World& world, const Numbers& numbers, size_t count, ccomRedOp_t op, bool in_place) {
  std::vector<std::vector<unsigned char>> results(static_cast<size_t>(world.ranks()));
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    std::vector<unsigned char> send = numbers.packed(numbers.of(rank, count)), recv(send.size());
    if (in_place) recv = send;
    for (int call = 0; call < (in_place ? 1 : 2); ++call) {
      ASSERT_OK(
          ccomAllReduce(in_place ? recv.data() : send.data(), recv.data(), count, numbers.type, op, comm, nullptr));
      auto& own = results[static_cast<size_t>(rank)];
      EXPECT_TRUE(call == 0 || own == recv) << world.name << ": the second call has other bits";
      own = recv;
    }
  });
  for (const auto& result : results) EXPECT_TRUE(result == results[0]) << world.name << ": ranks differ";
  return numbers.unpacked(results[0]);
}

double encoding_error(const World& world, double x, double largest) {
  return std::string(world.wire) == "fp8" ? std::max(std::abs(x) / 16, largest / 131072) : largest / 253;
}

// In three runs of 64 elements, of which one is the element's: its block, wherever that begins, lies within them.
std::vector<double> largest_around(const std::vector<double>& values) {
  constexpr size_t kRun = kNeighbours + 1;
  std::vector<double> of_run(values.size() / kRun + 3), largest(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    for (double* run = &of_run[i / kRun]; run != &of_run[i / kRun] + 3; ++run)
      *run = std::max(*run, std::abs(values[i]));
  }
  for (size_t i = 0; i < values.size(); ++i) largest[i] = of_run[i / kRun + 1];
  return largest;
}

// By the formula in ccom.h, with the most that float32's roundings add.
void expect_within_bound(const World& world, const Numbers& numbers, const std::vector<float>& results, bool averages) {
  const size_t count = results.size();
  std::vector<double> exact(count), bound(count), most(count);
  const int hosts = *std::ranges::max_element(world.hosts) + 1;
  for (int host = 0; host < hosts; ++host) {
    std::vector<double> sum(count);
    for (int rank = 0; rank < world.ranks(); ++rank) {
      if (world.hosts[static_cast<size_t>(rank)] != host) continue;
      const std::vector<float> own = numbers.of(rank, count);
      for (size_t i = 0; i < count; ++i) sum[i] += own[i];
    }
    const std::vector<double> largest = largest_around(sum);
    for (size_t i = 0; i < count; ++i) {
      exact[i] += sum[i];
      bound[i] += encoding_error(world, sum[i], largest[i]) + 1e-6 * largest[i];
    }
  }
  for (size_t i = 0; i < count; ++i) most[i] = std::abs(exact[i]) + bound[i];
  const std::vector<double> largest = largest_around(most);
  const double ranks = averages ? world.ranks() : 1;
  size_t beyond = 0, different = 0;
  for (size_t i = 0; i < count; ++i) {
    const double all = (bound[i] + encoding_error(world, most[i], largest[i]) + 1e-6 * largest[i]) / ranks;
    const double stored = numbers.type == ccomBfloat16 ? std::abs(results[i]) / 256 : 0;
    const double off = std::abs(results[i] - exact[i] / ranks);
    if (!(off <= all + stored)) ++beyond;
    if (off > 1e-5 * largest[i] / ranks) ++different;
  }
  EXPECT_EQ(beyond, 0U) << world.name << " " << world.wire;
  EXPECT_GT(different, count / 10) << world.name << ": nothing was encoded";
}

TEST(Wire, SumsAreWithinTheBoundAndEqualOnAllRanks) {
  for (const char* wire : {"fp8", "int8"}) {
    for (const World& world : worlds_over_hosts(wire)) {
      for (const Numbers& numbers : {Numbers{ccomFloat32}, Numbers{ccomBfloat16}}) {
        const std::vector<float> sums = sum_in(world, numbers, kCount, ccomSum, false);
        expect_within_bound(world, numbers, sums, false);
        EXPECT_TRUE(sums == sum_in(world, numbers, kCount, ccomSum, true)) << world.name << ": in place";
      }
    }
  }
}

TEST(Wire, AveragesDivideBeforeTheTotalIsEncoded) {
  for (const World& world : worlds_over_hosts("int8"))
    expect_within_bound(world, {ccomFloat32}, sum_in(world, {ccomFloat32}, kCount, ccomAvg, false), true);
}

TEST(Wire, LongCallsOfManyTilesAreWithinTheBound) {
  for (const char* wire : {"fp8", "int8"}) {
    for (const World& world :
         {World{"2 x 2", {0, 0, 1, 1}}, World{"three hosts in turn", {0, 1, 2, 0, 1, 2}}, World{"2, 1", {0, 0, 1}}}) {
      World narrow = world;
      narrow.wire = wire;
      const Numbers numbers{ccomFloat32};
      expect_within_bound(narrow, numbers, sum_in(narrow, numbers, 1500077, ccomSum, false), false);
    }
  }
}

TEST(Wire, HasNoEffectOnShortCallsAndOnOneHost) {
  const Numbers numbers{ccomFloat32};
  for (World world : {World{"2 x 2", {0, 0, 1, 1}}, World{"one host", {0, 0, 0}}}) {
    for (const size_t count : {size_t{1}, size_t{4096}, size_t{20011}}) {
      if (count > 4096 && world.ranks() == 4) continue;
      world.wire = nullptr;
      const std::vector<float> plain = sum_in(world, numbers, count, ccomSum, false);
      world.wire = "fp8";
      EXPECT_TRUE(plain == sum_in(world, numbers, count, ccomSum, false)) << world.name << ", " << count;
    }
  }
}

TEST(Wire, HasNoEffectOnOtherTypesAndOperators) {
  const World world{.name = "2 x 2", .hosts = {0, 0, 1, 1}, .wire = "int8"};
  const Numbers numbers{ccomFloat32};
  std::vector<float> expected = numbers.of(0, kCount);
  for (int rank = 1; rank < 4; ++rank) {
    const std::vector<float> own = numbers.of(rank, kCount);
    for (size_t i = 0; i < kCount; ++i) expected[i] = std::max(expected[i], own[i]);
  }
  EXPECT_TRUE(sum_in(world, numbers, kCount, ccomMax, false) == expected);
  with_ranks(world, [&](int rank, ccomComm_t comm) {
    std::vector<int32_t> integers(kCount, rank + 1000001);
    ASSERT_OK(ccomAllReduce(integers.data(), integers.data(), kCount, ccomInt32, ccomSum, comm, nullptr));
    EXPECT_EQ(std::ranges::count(integers, 4000010), static_cast<std::ptrdiff_t>(kCount));
    std::vector<double> doubles(kCount, 1.000001);
    ASSERT_OK(ccomAllReduce(doubles.data(), doubles.data(), kCount, ccomFloat64, ccomSum, comm, nullptr));
    EXPECT_EQ(doubles[17], 4 * 1.000001);
    std::vector<float> reduced(kCount, 1.000001F);
    ASSERT_OK(ccomReduce(reduced.data(), reduced.data(), kCount, ccomFloat32, ccomSum, 0, comm, nullptr));
    EXPECT_EQ(rank == 0 ? reduced[17] : 4 * 1.000001F, 4 * 1.000001F);
  });
}

// A block with an infinity or NaN is NaN, on all ranks; blocks beside it are not.
TEST(Wire, WhatIsNotFiniteMakesItsBlockNaN) {
  constexpr size_t kBad = 10000;
  const std::array bad = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max()};
  for (const char* wire : {"fp8", "int8"}) {
    for (World world : worlds_over_hosts(wire)) {
      with_ranks(world, [&](int rank, ccomComm_t comm) {
        for (const float each : bad) {
          std::vector<float> sums(kCount, 1.0F);
          const bool overflows = each == std::numeric_limits<float>::max();  // only as a sum
          if (overflows || rank == 1) sums[kBad] = each;
          ASSERT_OK(ccomAllReduce(sums.data(), sums.data(), kCount, ccomFloat32, ccomSum, comm, nullptr));
          EXPECT_TRUE(std::isnan(sums[kBad])) << world.name << ": " << each << " became " << sums[kBad];
          for (size_t i = 0; i < kCount; ++i) {
            const bool is_near = i + kNeighbours >= kBad && i <= kBad + kNeighbours;
            ASSERT_TRUE(is_near || std::abs(sums[i] / static_cast<float>(world.ranks()) - 1) < 0.01F)
                << world.name << " " << wire << ": " << i << " became " << sums[i];
          }
        }
      });
    }
  }
}

TEST(Wire, ZerosAndTinyNumbersStayWhatTheyAre) {
  for (const char* wire : {"fp8", "int8"}) {
    const World world{.name = "2 x 2", .hosts = {0, 0, 1, 1}, .wire = wire};
    with_ranks(world, [&](int, ccomComm_t comm) {
      std::vector<float> sums(kCount, 0.0F);
      std::fill(sums.begin() + 12800, sums.end(), std::ldexp(1.0F, -125));
      ASSERT_OK(ccomAllReduce(sums.data(), sums.data(), kCount, ccomFloat32, ccomSum, comm, nullptr));
      EXPECT_EQ(sums[0], 0.0F);
      EXPECT_EQ(sums[12000], 0.0F);
      EXPECT_NEAR(sums[20000] / std::ldexp(1.0F, -123), 1, 0.01);
    });
  }
}

}  // namespace
}  // namespace ccom
