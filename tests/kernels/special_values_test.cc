// SPDX-License-Identifier: Apache-2.0
//
// Shows the arithmetic of narrow formats exhaustively (every pair of 8-bit codes, every 16-bit code against awkward
// partners), and the promises about zeros, NaNs, overflow, wrapping and averages on values that can be read.
#include "kernels/kernels.h"

#include "reference.h"
#include "workload.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace ccom {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> combine(const Reduction& reduction, const std::vector<std::vector<T>>& inputs) {
  std::vector<std::vector<std::byte>> buffers;
  for (const auto& input : inputs) buffers.push_back(bytes_of(input));
  const std::vector<std::byte> output = reduced(reduction, buffers, inputs[0].size());
  std::vector<T> values(inputs[0].size());
  std::memcpy(values.data(), output.data(), output.size());
  return values;
}

// All of `left` against all of `right`, with every operator of floating types.
template <class Code>
void check_pairs(DataType type, const std::vector<Code>& left, const std::vector<Code>& right) {
  std::vector<Code> first, second;
  for (const Code a : left) {
    for (const Code b : right) {
      first.push_back(a);
      second.push_back(b);
    }
  }
  const std::vector<std::vector<std::byte>> inputs = {bytes_of(first), bytes_of(second)};
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::Avg}) {
    const Reduction reduction{.type = type, .op = op, .divide_by = op == ReduceOp::Avg ? 3u : 0u};
    const std::vector<std::byte> expected = reference::reduce(reduction, addresses(inputs), first.size());
    for_each_target([&] {
      const std::vector<std::byte> actual = reduced(reduction, inputs, first.size());
      for (size_t i = 0; actual != expected && i < first.size(); ++i) {
        ASSERT_EQ(std::memcmp(&actual[i * sizeof(Code)], &expected[i * sizeof(Code)], sizeof(Code)), 0)
            << describe(reduction) << ", " << kernel_target() << ": " << +first[i] << ", " << +second[i];
      }
    });
    if (testing::Test::HasFatalFailure()) return;
  }
}

template <class Code>
std::vector<Code> all_codes() {
  std::vector<Code> codes;
  for (uint32_t code = 0; code <= std::numeric_limits<Code>::max(); ++code) codes.push_back(static_cast<Code>(code));
  return codes;
}

TEST(Float8, CombinesEveryPairOfCodes) {
  for (const DataType type : {DataType::Float8e4m3, DataType::Float8e5m2}) {
    check_pairs(type, all_codes<uint8_t>(), all_codes<uint8_t>());
  }
}

TEST(Float16, CombinesEveryCodeWithAwkwardPartners) {
  check_pairs<uint16_t>(DataType::Float16, all_codes<uint16_t>(),
                        {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0x3555, 0x7bff, 0xfc00, 0x7e01});
}

TEST(Bfloat16, CombinesEveryCodeWithAwkwardPartners) {
  check_pairs<uint16_t>(DataType::Bfloat16, all_codes<uint16_t>(),
                        {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x3f80, 0x3eab, 0x7f7f, 0xff80, 0x7fc1});
}

TEST(NarrowFloats, KeepEveryCodeThroughAnAverageOfOne) {
  for (const DataType type : kNarrowFloats) {
    const reference::Format& format = reference::Format::of(type);
    std::vector<std::byte> codes =
        size_of(type) == 1 ? bytes_of(all_codes<uint8_t>()) : bytes_of(all_codes<uint16_t>());
    const Reduction average{.type = type, .op = ReduceOp::Avg, .divide_by = 1};
    for_each_target([&] {
      const std::vector<std::byte> result = reduced(average, {codes}, format.codes());
      for (uint32_t code = 0; code < format.codes(); ++code) {
        uint32_t actual = 0;
        std::memcpy(&actual, &result[code * size_of(type)], size_of(type));
        ASSERT_EQ(actual, std::isnan(format.value(code)) ? format.nan() : code)
            << name_of(type) << ", " << kernel_target();
      }
    });
  }
}

TEST(NarrowFloats, RoundOnceHoweverManyInputs) {
  // 2048 + 1 + 1 would stay 2048 if float16 were rounded after each step.
  EXPECT_EQ(combine<uint16_t>({.type = DataType::Float16}, {{0x6800}, {0x3c00}, {0x3c00}})[0], 0x6801);
  // 256 + 1 + 1 in bfloat16, 16 + 1 + 1 in e4m3, 8 + 1 + 1 in e5m2.
  EXPECT_EQ(combine<uint16_t>({.type = DataType::Bfloat16}, {{0x4380}, {0x3f80}, {0x3f80}})[0], 0x4381);
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Float8e4m3}, {{0x58}, {0x38}, {0x38}})[0], 0x59);
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Float8e5m2}, {{0x48}, {0x3c}, {0x3c}})[0], 0x49);
}

TEST(NarrowFloats, OverflowToInfinityOrNan) {
  EXPECT_EQ(combine<uint16_t>({.type = DataType::Float16}, {{0x7bff}, {0x7bff}})[0], 0x7c00);
  EXPECT_EQ(combine<uint16_t>({.type = DataType::Bfloat16}, {{0xff7f}, {0xff7f}})[0], 0xff80);
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Float8e5m2}, {{0x7b}, {0x7b}})[0], 0x7c);
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Float8e4m3}, {{0x7e}, {0x7e}})[0], 0x7f);
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Float8e4m3}, {{0xfe}, {0xfe}})[0], 0xff);
  // An average does not overflow on the way.
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Float8e4m3, .op = ReduceOp::Avg, .divide_by = 2}, {{0x7e}, {0x7e}})[0],
            0x7e);
}

#if defined(__SSE2__)
TEST(NarrowFloats, KeepSubnormalsWhenTheCallerFlushesThem) {
  constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;
  const std::vector<std::vector<uint16_t>> halves = {all_codes<uint16_t>(), std::vector<uint16_t>(65536, 0x0001)};
  const std::vector<std::vector<uint8_t>> bytes = {all_codes<uint8_t>(), std::vector<uint8_t>(256, 0x01)};
  for_each_target([&] {
    const auto expected_halves = combine<uint16_t>({.type = DataType::Float16}, halves);
    const auto expected_bytes = combine<uint8_t>({.type = DataType::Float8e4m3}, bytes);
    const unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | kFlushToZeroAndDenormalsAreZero);
    const auto actual_halves = combine<uint16_t>({.type = DataType::Float16}, halves);
    const auto actual_bytes = combine<uint8_t>({.type = DataType::Float8e4m3}, bytes);
    _mm_setcsr(saved);
    EXPECT_EQ(actual_halves, expected_halves) << kernel_target();
    EXPECT_EQ(actual_bytes, expected_bytes) << kernel_target();
  });
}
#endif

TEST(Floats, OrderZerosAndLetNansWin) {
  const std::vector<float> a = {0.0f, -0.0f, 1.0f, kNan, -kNan, -kInfinity, kNan, -2.0f};
  const std::vector<float> b = {-0.0f, 0.0f, kNan, -1.0f, kInfinity, kNan, kNan, -3.0f};
  for_each_target([&] {
    for (const bool swapped : {false, true}) {
      const auto inputs = swapped ? std::vector{b, a} : std::vector{a, b};
      const auto largest = combine<float>({.op = ReduceOp::Max}, inputs);
      const auto smallest = combine<float>({.op = ReduceOp::Min}, inputs);
      EXPECT_FALSE(std::signbit(largest[0]) || std::signbit(largest[1])) << kernel_target();
      EXPECT_TRUE(std::signbit(smallest[0]) && std::signbit(smallest[1])) << kernel_target();
      for (const size_t i : {2, 3, 4, 5, 6}) {
        EXPECT_EQ(std::bit_cast<uint32_t>(largest[i]), 0x7fc00000u) << kernel_target() << " " << i;
        EXPECT_EQ(std::bit_cast<uint32_t>(smallest[i]), 0x7fc00000u) << kernel_target() << " " << i;
      }
      EXPECT_EQ(largest[7], -2.0f);
      EXPECT_EQ(smallest[7], -3.0f);
    }
  });
}

TEST(Floats, KeepTheSignOfZeroInSums) {
  const auto sums = combine<float>({}, {{-0.0f, -0.0f, 1.0f}, {-0.0f, 0.0f, -1.0f}});
  EXPECT_TRUE(std::signbit(sums[0]));
  EXPECT_FALSE(std::signbit(sums[1]));
  EXPECT_FALSE(std::signbit(sums[2]));
}

TEST(Floats, OfOneInputAreCopiedWithEveryBitOfTheirNans) {
  for (const uint32_t bits : {0x7f800001u, 0xffc12345u}) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Avg}) {
      EXPECT_EQ(combine<uint32_t>({.op = op}, {{bits}})[0], bits);
    }
  }
}

TEST(Floats, AverageByTrueDivision) {
  // 5 * (1 / 3.0f) and 5 / 3.0f differ in the last place, as do many others among these.
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto averages = combine<float>({.op = ReduceOp::Avg, .divide_by = 3}, {values});
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(averages[i], values[i] / 3.0f);
}

TEST(Complex, MultiplyAndAverage) {
  using Complex = std::complex<double>;
  EXPECT_EQ(combine<Complex>({.type = DataType::Complex128, .op = ReduceOp::Prod}, {{{1, 2}}, {{3, 4}}})[0],
            Complex(-5, 10));
  EXPECT_EQ(
      combine<Complex>({.type = DataType::Complex128, .op = ReduceOp::Avg, .divide_by = 2}, {{{1, 2}}, {{3, 4}}})[0],
      Complex(2, 3));
}

TEST(Integers, WrapAndAverageTowardsZero) {
  EXPECT_EQ(combine<int8_t>({.type = DataType::Int8}, {{100}, {100}})[0], -56);
  EXPECT_EQ(combine<int8_t>({.type = DataType::Int8, .op = ReduceOp::Avg, .divide_by = 2}, {{100}, {100}})[0], -28);
  EXPECT_EQ(combine<int32_t>({.type = DataType::Int32, .op = ReduceOp::Avg, .divide_by = 2}, {{-3}, {-4}})[0], -3);
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Uint8, .op = ReduceOp::Avg, .divide_by = 3}, {{200}, {100}})[0], 14);
  EXPECT_EQ(combine<uint64_t>({.type = DataType::Uint64, .op = ReduceOp::Avg, .divide_by = 2}, {{~0ull}, {0}})[0],
            ~0ull / 2);
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(combine<int64_t>({.type = DataType::Int64, .op = ReduceOp::Avg, .divide_by = 4}, {{kLowest}, {0}})[0],
            kLowest / 4);
  EXPECT_EQ(combine<int64_t>({.type = DataType::Int64, .op = ReduceOp::Prod}, {{kLowest}, {-1}})[0], kLowest);
}

TEST(Logic, GivesZeroOrOneForOneInputToo) {
  EXPECT_EQ(combine<int32_t>({.type = DataType::Int32, .op = ReduceOp::Land}, {{5, -7, 0}, {2, 0, 0}}),
            (std::vector<int32_t>{1, 0, 0}));
  EXPECT_EQ(combine<int32_t>({.type = DataType::Int32, .op = ReduceOp::Lor}, {{5, -7, 0}, {2, 0, 0}}),
            (std::vector<int32_t>{1, 1, 0}));
  EXPECT_EQ(combine<int32_t>({.type = DataType::Int32, .op = ReduceOp::Land}, {{5, -7, 0}}),
            (std::vector<int32_t>{1, 1, 0}));
}

TEST(Bools, AreNormalisedWhateverTheByte) {
  const std::vector<std::vector<uint8_t>> inputs = {{0, 0, 2, 255, 1}, {0, 4, 0, 254, 1}};
  using Bytes8 = std::vector<uint8_t>;
  const auto with = [&](ReduceOp op) { return combine<uint8_t>({.type = DataType::Bool, .op = op}, inputs); };
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Bor, ReduceOp::Lor}) {
    EXPECT_EQ(with(op), (Bytes8{0, 1, 1, 1, 1})) << name_of(op);
  }
  for (const ReduceOp op : {ReduceOp::Prod, ReduceOp::Min, ReduceOp::Band, ReduceOp::Land}) {
    EXPECT_EQ(with(op), (Bytes8{0, 0, 0, 1, 1})) << name_of(op);
  }
  EXPECT_EQ(with(ReduceOp::Bxor), (Bytes8{0, 1, 1, 0, 0}));
  EXPECT_EQ(combine<uint8_t>({.type = DataType::Bool}, {{7, 0}}), (Bytes8{1, 0}));
}

}  // namespace
}  // namespace ccom
