// SPDX-License-Identifier: Apache-2.0
//
// The expected values: inputs are what was promised (exact whatever the order, different each time), the reduction is
// right, and a single wrong element is found and named.
#include "bench/expected.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/formats.h"

namespace ccom::bench {
namespace {

constexpr size_t kCount = 3000;  // More than one chunk, and not a whole number of them.

template <class T>
std::vector<T> input_of(const Pattern& pattern, int rank, uint64_t iteration = 1, size_t first = 0) {
  std::vector<T> values(kCount);
  fill(pattern, {.iteration = iteration, .source = rank, .first = first, .count = kCount}, values.data());
  return values;
}

// What `combine(sum so far, input)` makes of the inputs of all ranks, the last one's first, from `start` on.
template <class T, class Combine>
std::vector<T> folded(const Pattern& pattern, T start, const Combine& combine) {
  std::vector<T> result(kCount, start);
  for (int rank = pattern.ranks; rank-- > 0;) {
    const auto input = input_of<T>(pattern, rank);
    for (size_t i = 0; i < kCount; ++i) result[i] = static_cast<T>(combine(result[i], input[i]));
  }
  return result;
}

Stretch everybody(uint64_t iteration = 1) {
  return {.iteration = iteration, .source = kEveryRank, .first = 0, .count = kCount};
}

// For every legal pair and several numbers of ranks.
template <class Function>
void for_each_pattern(Function&& function) {
  for (int ranks : {1, 2, 4, 7, 40}) {
    for (ccomDataType_t type : all_types()) {
      for (Reduction reduction : all_reductions()) {
        const Pattern pattern{.type = type, .reduction = reduction, .ranks = ranks};
        if (!is_legal(type, reduction)) continue;
        SCOPED_TRACE(std::string(name_of(type)) + " " + std::string(name_of(reduction)) + " " + std::to_string(ranks));
        function(pattern);
      }
    }
  }
}

TEST(Fill, IsWhatCheckExpectsOfOneRankAtAnyOffsetAndAlignment) {
  for_each_pattern([](const Pattern& pattern) {
    std::vector<std::byte> memory(kCount * size_of(pattern.type) + 3);
    const Stretch stretch{.iteration = 5, .source = pattern.ranks - 1, .first = 77, .count = kCount};
    fill(pattern, stretch, memory.data() + 3);
    ASSERT_EQ(check(pattern, stretch, memory.data() + 3).wrong, 0u);
  });
}

TEST(Fill, GivesTheSameElementsWhateverTheStretch) {
  const Pattern pattern{.type = ccomFloat32, .reduction = Reduction::Sum, .ranks = 4};
  const auto from_start = input_of<float>(pattern, 2);
  const auto later = input_of<float>(pattern, 2, 1, 1000);
  EXPECT_TRUE(std::equal(later.begin(), later.begin() + 2000, from_start.begin() + 1000));
}

TEST(Fill, ChangesWithIterationAndRank) {
  const Pattern pattern{.type = ccomInt32, .reduction = Reduction::Sum, .ranks = 4};
  EXPECT_NE(input_of<int32_t>(pattern, 0, 1), input_of<int32_t>(pattern, 0, 2));
  EXPECT_NE(input_of<int32_t>(pattern, 0, 1), input_of<int32_t>(pattern, 1, 1));
}

TEST(Check, SumsFloatsExactly) {
  const Pattern pattern{.type = ccomFloat32, .reduction = Reduction::Sum, .ranks = 3};
  const auto sum = folded(pattern, 0.0f, std::plus<>());
  EXPECT_EQ(check(pattern, everybody(), sum.data()).wrong, 0u);
  EXPECT_GT(check(pattern, everybody(2), sum.data()).wrong, kCount / 2);  // Other data in the next iteration.
}

// The promise that makes exact comparison possible: rounding after each addition, in either order, changes nothing.
template <class Format>
void partial_sums_are_exact(ccomDataType_t type, int ranks) {
  using Storage =
      std::conditional_t < sizeof(typename Format::Domain) == 8 && Format::kMantissaBits<4, uint8_t, uint16_t>;
  const Pattern pattern{.type = type, .reduction = Reduction::Sum, .ranks = ranks};
  std::vector<Storage> up(kCount, 0);
  std::vector<Storage> down(kCount, 0);
  for (int i = 0; i < ranks; ++i) {
    const auto first = input_of<Storage>(pattern, i);
    const auto last = input_of<Storage>(pattern, ranks - 1 - i);
    for (size_t k = 0; k < kCount; ++k) {
      // encode() cuts off what does not fit, so an inexact partial sum shows as a difference.
      up[k] = static_cast<Storage>(Format::encode(Format::decode(up[k]) + Format::decode(first[k])));
      down[k] = static_cast<Storage>(Format::encode(Format::decode(down[k]) + Format::decode(last[k])));
    }
  }
  const Verdict verdict = check(pattern, everybody(), up.data());
  EXPECT_EQ(verdict.wrong, 0u) << ranks << " ranks: got " << verdict.got << ", expected " << verdict.expected;
  EXPECT_EQ(check(pattern, everybody(), down.data()).wrong, 0u) << ranks;
}

TEST(Check, NeedsNoRoundingForNarrowSumsOfAnyNumberOfRanks) {
  for (int ranks : {1, 2, 5, 16, 33, 300}) {
    partial_sums_are_exact<Half>(ccomFloat16, ranks);
    partial_sums_are_exact<Brain>(ccomBfloat16, ranks);
    partial_sums_are_exact<E4M3>(ccomFloat8e4m3, ranks);
    partial_sums_are_exact<E5M2>(ccomFloat8e5m2, ranks);
  }
}

TEST(Check, WrapsIntegers) {
  const Pattern pattern{.type = ccomInt8, .reduction = Reduction::Prod, .ranks = 3};
  const auto product = folded<int8_t>(pattern, 1, std::multiplies<>());
  EXPECT_EQ(check(pattern, everybody(), product.data()).wrong, 0u);
}

TEST(Check, DividesTheWrappedSumTowardsZero) {
  const Pattern pattern{.type = ccomInt16, .reduction = Reduction::Avg, .ranks = 3};
  auto average = folded<int16_t>(pattern, 0, std::plus<>());
  for (int16_t& value : average) value = static_cast<int16_t>(value / 3);
  EXPECT_EQ(check(pattern, everybody(), average.data()).wrong, 0u);
}

TEST(Check, AllowsTwoUnitsInTheLastPlaceForAnAverageAndNotMore) {
  const Pattern pattern{.type = ccomFloat32, .reduction = Reduction::Avg, .ranks = 3};
  auto average = folded(pattern, 0.0f, std::plus<>());
  for (float& value : average) value *= 1.0f / 3;
  EXPECT_EQ(check(pattern, everybody(), average.data()).wrong, 0u);
  average[5] *= 1.000001f;
  EXPECT_EQ(check(pattern, everybody(), average.data()).wrong, 1u);
}

TEST(Check, TakesNothingButZeroForAnAverageOfZero) {
  const Pattern pattern{.type = ccomFloat8e4m3, .reduction = Reduction::Avg, .ranks = 2};
  const auto first = input_of<uint8_t>(pattern, 0);
  const auto second = input_of<uint8_t>(pattern, 1);
  constexpr uint8_t kSign = 0x80;
  size_t opposite = 0;
  while (opposite < kCount && (first[opposite] ^ second[opposite]) != kSign) ++opposite;
  ASSERT_LT(opposite, kCount) << "no sum is 0";
  const Stretch element{.iteration = 1, .source = kEveryRank, .first = opposite, .count = 1};
  constexpr uint8_t kZero = 0;
  constexpr uint8_t kOne = 0x38;
  EXPECT_EQ(check(pattern, element, &kZero).wrong, 0u);
  EXPECT_EQ(check(pattern, element, &kOne).wrong, 1u);
}

TEST(Check, AppliesEachRanksScalar) {
  const Pattern pattern{.type = ccomFloat64, .reduction = Reduction::PreMulSum, .ranks = 4};
  std::vector<double> sum(kCount, 0.0);
  for (int rank = 0; rank < 4; ++rank) {
    double scalar = 0;
    write_scalar(pattern, rank, &scalar);
    const auto input = input_of<double>(pattern, rank);
    for (size_t i = 0; i < kCount; ++i) sum[i] += scalar * input[i];
  }
  EXPECT_EQ(check(pattern, everybody(), sum.data()).wrong, 0u);
}

TEST(Check, ComposesMapsInTheOrderOfRanks) {
  const Pattern pattern{.type = ccomInt16, .reduction = Reduction::UserOrdered, .ranks = 4};
  for (const bool is_reversed : {false, true}) {
    std::vector<int16_t> result = input_of<int16_t>(pattern, is_reversed ? 3 : 0);
    for (const int step : {1, 2, 3}) {
      const auto input = input_of<int16_t>(pattern, is_reversed ? 3 - step : step);
      // x -> a x + b modulo 256, a in the upper byte.
      for (size_t i = 0; i < kCount; ++i) {
        const int f = static_cast<uint16_t>(result[i]), g = static_cast<uint16_t>(input[i]);
        const int a = (f >> 8) * (g >> 8) % 256, b = ((f >> 8) * (g % 256) + f % 256) % 256;
        result[i] = static_cast<int16_t>(a * 256 + b);
      }
    }
    if (is_reversed)
      EXPECT_GT(check(pattern, everybody(), result.data()).wrong, kCount / 2);
    else
      EXPECT_EQ(check(pattern, everybody(), result.data()).wrong, 0u);
  }
}

TEST(Check, TakesSumOfBoolAsOrAndProdAsAnd) {
  for (Reduction reduction : {Reduction::Sum, Reduction::Prod, Reduction::User}) {
    const Pattern pattern{.type = ccomBool, .reduction = reduction, .ranks = 3};
    const bool is_and = reduction == Reduction::Prod;
    const auto combine = [=](int a, int b) { return is_and ? a & b : a | b; };
    const auto result = folded<uint8_t>(pattern, is_and ? 1 : 0, combine);
    EXPECT_EQ(check(pattern, everybody(), result.data()).wrong, 0u);
    const auto ones = std::ranges::count(result, 1);
    EXPECT_GT(ones, 0);
    EXPECT_LT(ones, static_cast<std::ptrdiff_t>(kCount));
  }
}

TEST(Check, TellsOneRanksInputFromTheResult) {
  for_each_pattern([](const Pattern& pattern) {
    if (pattern.ranks == 1) return;
    std::vector<std::byte> memory(kCount * size_of(pattern.type));
    fill(pattern, {.iteration = 1, .source = 0, .first = 0, .count = kCount}, memory.data());
    EXPECT_GT(check(pattern, everybody(), memory.data()).wrong, 20u);
  });
}

TEST(Check, NamesTheFirstWrongElement) {
  const Pattern pattern{.type = ccomInt32, .reduction = Reduction::Max, .ranks = 1};
  auto values = input_of<int32_t>(pattern, 0);
  const int32_t right = values[2000];
  values[2000] ^= 1;
  values[2500] ^= 1;
  const Verdict verdict = check(pattern, everybody(), values.data());
  EXPECT_EQ(verdict.wrong, 2u);
  EXPECT_EQ(verdict.index, 2000u);
  EXPECT_EQ(verdict.got, std::to_string(values[2000]));
  EXPECT_EQ(verdict.expected, std::to_string(right));
}

TEST(Check, SeesOneBitInDataThatIsOnlyMoved) {
  for (ccomDataType_t type : all_types()) {
    const Pattern pattern{.type = type, .reduction = Reduction::Move, .ranks = 4};
    const Stretch stretch{.iteration = 9, .source = 3, .first = 13, .count = kCount};
    std::vector<std::byte> memory(kCount * size_of(type));
    fill(pattern, stretch, memory.data());
    ASSERT_EQ(check(pattern, stretch, memory.data()).wrong, 0u) << name_of(type);
    memory[1234 * size_of(type)] ^= std::byte{1};
    const Verdict verdict = check(pattern, stretch, memory.data());
    EXPECT_EQ(verdict.wrong, 1u) << name_of(type);
    EXPECT_EQ(verdict.index, 1234u) << name_of(type);
  }
}

TEST(HashBytes, DependsOnEveryByteAndTheLength) {
  std::vector<std::byte> memory(37);
  const uint64_t before = hash_bytes(memory.data(), memory.size());
  EXPECT_NE(before, hash_bytes(memory.data(), memory.size() - 1));
  for (std::byte& byte : memory) {
    byte ^= std::byte{0x80};
    EXPECT_NE(before, hash_bytes(memory.data(), memory.size()));
    byte ^= std::byte{0x80};
  }
}

}  // namespace
}  // namespace ccom::bench
