// SPDX-License-Identifier: Apache-2.0
//
// Blocks of 8-bit numbers with a scale: the error bound of scaled_blocks.h for numbers of every magnitude, the same
// bits with every instruction set, and what becomes of zeros, infinities and NaNs.
#include "kernels/scaled_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "kernels/kernels.h"
#include "tests/harness/float_environment.h"
#include "workload.h"

namespace ccom {
namespace {

using Bytes = std::vector<std::byte>;
constexpr DataType kBlockTypes[] = {DataType::Float8Block, DataType::Int8Block};

Bytes encoded(DataType type, const std::vector<float>& values) {
  Bytes blocks(elements_for(type, values.size()) * size_of(type));
  convert(DataType::Float32, type, reinterpret_cast<const std::byte*>(values.data()), blocks.data(), values.size());
  return blocks;
}
std::vector<float> decoded(DataType type, const Bytes& blocks, size_t count) {
  std::vector<float> values(count);
  convert(type, DataType::Float32, blocks.data(), reinterpret_cast<std::byte*>(values.data()), count);
  return values;
}

// Of magnitudes around 2^exponent that differ by up to 2^spread.
std::vector<float> numbers(size_t count, int exponent, int spread) {
  std::mt19937 random(static_cast<uint32_t>(exponent * 31 + spread));
  std::uniform_real_distribution<float> part(-1, 1);
  std::vector<float> values(count);
  for (float& value : values)
    value = std::ldexp(part(random), exponent - static_cast<int>(random() % (static_cast<uint32_t>(spread) + 1)));
  return values;
}

double bound(DataType type, double x, double largest) {
  if (type == DataType::Int8Block) return std::max(largest / 253, std::ldexp(1, -127));
  return std::max({std::abs(x) / 16, largest / 131072, std::ldexp(1, -136)});
}

TEST(ScaledBlocks, ErrorsStayWithinTheBound) {
  for_each_target([] {
    for (const DataType type : kBlockTypes) {
      for (int exponent = -149; exponent <= 127; ++exponent) {
        for (const int spread : {0, 4, 30}) {
          const std::vector<float> values = numbers(5 * kBlockValues + 7, exponent, spread);
          const std::vector<float> back = decoded(type, encoded(type, values), values.size());
          for (size_t i = 0; i < values.size(); ++i) {
            const size_t first = i / kBlockValues * kBlockValues;
            float largest = 0;
            for (size_t j = first; j < std::min(first + kBlockValues, values.size()); ++j)
              largest = std::max(largest, std::abs(values[j]));
            ASSERT_LE(std::abs(double{back[i]} - values[i]), bound(type, values[i], largest))
                << values[i] << " in a block up to " << largest << ", " << kernel_target();
          }
        }
      }
    }
  });
}

TEST(ScaledBlocks, BitsAreTheSameWithEveryInstructionSet) {
  for (const DataType type : kBlockTypes) {
    Bytes blocks, sums;
    for_each_target([&] {
      const Bytes a = encoded(type, numbers(1000, 3, 9)), b = encoded(type, numbers(1000, 1, 20));
      Bytes sum(a.size());
      const std::byte* const inputs[] = {a.data(), b.data(), b.data()};
      reduce({.type = type, .op = ReduceOp::Avg, .divide_by = 7}, inputs, sum.data(), a.size() / size_of(type));
      if (blocks.empty()) blocks = a, sums = sum;
      EXPECT_TRUE(blocks == a && sums == sum) << kernel_target();
    });
  }
}

TEST(ScaledBlocks, U3BitsAreTheSameInEveryFloatingPointEnvironment) {
  constexpr size_t kCount = 1000;
  for (const DataType type : kBlockTypes) {
    for (const int exponent : {3, -120, -140}) {
      const std::vector<float> x = numbers(kCount, exponent, 9), y = numbers(kCount, exponent - 2, 20);
      const auto made = [&] {
        const Bytes a = encoded(type, x), b = encoded(type, y);
        Bytes sum = a;
        std::vector<float> loss(kCount), more(kCount);
        const std::byte* const inputs[] = {sum.data(), b.data()};
        write_loss(type, reinterpret_cast<const std::byte*>(x.data()), a.data(),
                   reinterpret_cast<std::byte*>(loss.data()), kCount);
        reduce_with_loss({.type = type, .op = ReduceOp::Avg, .divide_by = 3}, inputs, sum.data(),
                         reinterpret_cast<std::byte*>(more.data()), kCount);
        return std::tuple(a, b, sum, loss, more, decoded(type, sum, kCount));
      };
      const auto expected = made();
      for (const FloatControl& control : kOtherFloatControls) {
        const InFloatControl set(control);
        const auto found = made();
        set_float_control(kOtherFloatControls[0].word);  // comparing raises nothing
        EXPECT_TRUE(found == expected) << control.name << ", exponent " << exponent;
      }
    }
  }
}

TEST(ScaledBlocks, SumsAddInFloatAndEncodeOnce) {
  for_each_target([] {
    for (const DataType type : kBlockTypes) {
      constexpr size_t kCount = 3 * kBlockValues;
      std::vector<Bytes> inputs;
      std::vector<const std::byte*> places;
      std::vector<float> sum(kCount);
      for (int k = 0; k < 5; ++k) {
        inputs.push_back(encoded(type, numbers(kCount, k, 6)));
        const std::vector<float> values = decoded(type, inputs.back(), kCount);
        for (size_t i = 0; i < kCount; ++i) sum[i] = k == 0 ? values[i] : sum[i] + values[i];
      }
      for (const Bytes& input : inputs) places.push_back(input.data());
      reduce({.type = type}, places, inputs[3].data(), 3);  // one of the inputs too
      EXPECT_EQ(inputs[3], encoded(type, sum)) << kernel_target();
    }
  });
}

TEST(ScaledBlocks, LossIsWhatEncodingTakesAndZeroWhereThatIsNotFinite) {
  for (const DataType type : kBlockTypes) {
    std::vector<float> values = numbers(1000, 2, 9), loss(values.size(), 17);
    values[kBlockValues + 5] = std::numeric_limits<float>::infinity();
    const Bytes blocks = encoded(type, values);
    write_loss(type, reinterpret_cast<const std::byte*>(values.data()), blocks.data(),
               reinterpret_cast<std::byte*>(loss.data()), values.size());
    const std::vector<float> back = decoded(type, blocks, values.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(loss[i], i / kBlockValues == 1 ? 0 : values[i] - back[i]) << i;
    EXPECT_GT(std::ranges::count_if(loss, [](float lost) { return lost != 0; }), 300);
  }
}

TEST(ScaledBlocks, SumsAddTheirLossToWhatIsThere) {
  for (const DataType type : kBlockTypes) {
    constexpr size_t kCount = 700;
    const Bytes a = encoded(type, numbers(kCount, 3, 9)), b = encoded(type, numbers(kCount, 1, 20));
    const std::vector<float> x = decoded(type, a, kCount), y = decoded(type, b, kCount);
    for (const uint32_t divisor : {1U, 4U}) {
      const Reduction reduction{.type = type, .op = ReduceOp::Avg, .divide_by = divisor};
      Bytes plain(a.size()), sum = a;
      const std::byte* const inputs[] = {sum.data(), b.data()};
      reduce(reduction, inputs, plain.data(), elements_for(type, kCount));
      std::vector<float> loss(kCount, 1);
      reduce_with_loss(reduction, inputs, sum.data(), reinterpret_cast<std::byte*>(loss.data()), kCount);
      EXPECT_EQ(sum, plain);
      const std::vector<float> back = decoded(type, sum, kCount);
      const auto parts = static_cast<float>(divisor);
      for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(loss[i], 1 + ((x[i] + y[i]) / parts - back[i]) * parts) << i;
    }
  }
}

TEST(ScaledBlocks, WhatIsNotFiniteMakesTheBlockNaN) {
  constexpr float kBad[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  for_each_target([&] {
    for (const DataType type : kBlockTypes) {
      for (const float bad : kBad) {
        std::vector<float> values(3 * kBlockValues, 2);
        values[kBlockValues + 5] = bad;
        const std::vector<float> back = decoded(type, encoded(type, values), values.size());
        for (size_t i = 0; i < values.size(); ++i) {
          const bool is_beside = i / kBlockValues == 1;
          EXPECT_EQ(std::bit_cast<uint32_t>(back[i]) == 0x7fc00000, is_beside) << kernel_target() << " " << back[i];
        }
      }
    }
  });
}

TEST(ScaledBlocks, ZerosAndTheLargestNumbersStayFinite) {
  for_each_target([&] {
    for (const DataType type : kBlockTypes) {
      const bool is_float8 = type == DataType::Float8Block;
      const float most = is_float8 ? 0x1.efffp127F : std::numeric_limits<float>::max();
      std::vector<float> values(2 * kBlockValues);
      values[kBlockValues] = most;
      values[kBlockValues + 1] = -most;
      const std::vector<float> back = decoded(type, encoded(type, values), values.size());
      EXPECT_TRUE(std::ranges::all_of(back, [](float x) { return std::isfinite(x); })) << kernel_target();
      EXPECT_EQ(std::ranges::count(back, 0.0F), std::ssize(values) - 2);
    }
  });
}

TEST(ScaledBlocks, NarrowFloatsAreWidenedExactlyAndRoundedToNearest) {
  for_each_target([] {
    for (const DataType type : {DataType::Bfloat16, DataType::Float16, DataType::Float8e4m3, DataType::Float8e5m2}) {
      const std::vector<float> values = numbers(kBlockValues + 13, 2, 20);
      Bytes narrow(values.size() * size_of(type)), again(narrow.size());
      std::vector<float> wide(values.size());
      auto* const memory = reinterpret_cast<std::byte*>(wide.data());
      convert(DataType::Float32, type, reinterpret_cast<const std::byte*>(values.data()), narrow.data(), values.size());
      convert(type, DataType::Float32, narrow.data(), memory, values.size());
      convert(DataType::Float32, type, memory, again.data(), values.size());
      EXPECT_EQ(narrow, again) << kernel_target();
      const double step = std::ldexp(1, type == DataType::Bfloat16     ? -9
                                        : type == DataType::Float16    ? -12
                                        : type == DataType::Float8e4m3 ? -5
                                                                       : -4) *
                          2;
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(wide[i], values[i], std::max(std::abs(values[i]) * step, std::ldexp(1.0, -10))) << kernel_target();
    }
  });
}

}  // namespace
}  // namespace ccom
