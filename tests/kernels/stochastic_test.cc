// SPDX-License-Identifier: Apache-2.0
//
// Shows stochastic rounding: that its definition is exactly unbiased (every pattern of random bits is tried), that its
// random bits look random, and that every instruction set gives the definition's bits, wherever the vector is cut.
#include "kernels/formats.h"
#include "kernels/kernels.h"
#include "kernels/random.h"
#include "kernels/scaled_blocks.h"

#include "reference.h"
#include "workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace ccom {
namespace {

uint32_t code_at(DataType type, const std::vector<std::byte>& bytes, size_t index) {
  uint32_t code = 0;
  std::memcpy(&code, bytes.data() + index * size_of(type), std::min(size_of(type), sizeof code));
  return code;
}

uint32_t expected_code(DataType type, float value, uint64_t seed, uint64_t index) {
  const RandomKey key = random_key(seed, static_cast<uint32_t>(index >> 32));
  const auto low = static_cast<uint32_t>(index);
  const uint32_t random = type == DataType::Bfloat16 ? random_for_bfloat16(key, low) : random_for_element(key, low);
  return narrow_stochastic(format_of(type), value, random);
}

// What the kernels must give for vectors whose element 0 has index `first`.
std::vector<std::byte> expected_codes(const Reduction& reduction, const std::vector<std::vector<std::byte>>& inputs,
                                      uint64_t first) {
  const size_t size = size_of(reduction.type);
  std::vector<std::byte> result(inputs[0].size());
  for (size_t i = 0; i < result.size() / size; ++i) {
    float value = widen(format_of(reduction.type), code_at(reduction.type, inputs[0], i));
    for (size_t k = 1; k < inputs.size(); ++k) {
      const float other = widen(format_of(reduction.type), code_at(reduction.type, inputs[k], i));
      value = reduction.op == ReduceOp::Prod ? value * other : value + other;
    }
    if (reduction.divide_by != 0) value /= static_cast<float>(reduction.divide_by);
    const uint32_t code = expected_code(reduction.type, value, reduction.seed, first + i);
    std::memcpy(result.data() + i * size, &code, size);
  }
  return result;
}

std::vector<Reduction> stochastic_reductions() {
  std::vector<Reduction> result;
  for (const DataType type : kNarrowFloats) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Avg}) {
      const uint32_t divide_by = op == ReduceOp::Avg ? 3 : 0;
      result.push_back({type, op, divide_by, Rounding::Stochastic, 0x123456789abcdef});
    }
  }
  return result;
}

TEST(NarrowStochastic, KeepsEveryCodeWhateverTheRandomBits) {
  for (const DataType type : kNarrowFloats) {
    const NarrowFormat& format = format_of(type);
    for (uint32_t code = 0; code < reference::Format::of(type).codes(); ++code) {
      const float value = widen(format, code);
      for (const uint32_t random : {0u, 0x80000000u, ~0u}) {
        ASSERT_EQ(narrow_stochastic(format, value, random), narrow(format, value)) << name_of(type) << " " << code;
      }
    }
  }
}

// Between a code and the next, `fraction` 256ths above it: so many of all 2^8 values of the upper random bits round up.
// The lower ones, which also may be dropped bits, are then of no consequence.
TEST(NarrowStochastic, RoundsUpExactlyAsOftenAsUnbiasednessWants) {
  for (const DataType type : kNarrowFloats) {
    const NarrowFormat& format = format_of(type);
    const uint32_t step = std::max(1u, format.max_finite / 61);
    for (uint32_t code = 0; code < format.max_finite; code += step) {
      const double below = reference::Format::of(type).value(code);
      const double above = reference::Format::of(type).value(code + 1);
      for (const uint32_t fraction : {1u, 77u, 128u, 255u}) {
        const float value = static_cast<float>(below + (above - below) * fraction / 256);
        uint32_t ups = 0;
        for (uint32_t random = 0; random < 256; ++random) {
          const uint32_t rounded = narrow_stochastic(format, -value, random << 24 | 0x800000);
          ASSERT_TRUE(rounded == (code | 1u << (format.bits() - 1)) ||
                      rounded == ((code + 1) | 1u << (format.bits() - 1)));
          ups += (rounded & format.magnitude_mask()) == code + 1;
        }
        ASSERT_EQ(ups, fraction) << name_of(type) << " " << code;
      }
    }
  }
}

TEST(NarrowStochastic, PassesNanAndInfinityAndNeverRoundsUpToInfinity) {
  for (const DataType type : kNarrowFloats) {
    const NarrowFormat& format = format_of(type);
    const float largest = widen(format, format.max_finite);
    for (const uint32_t random : {0u, 0x12345678u, ~0u}) {
      EXPECT_EQ(narrow_stochastic(format, std::nanf(""), random), format.nan);
      EXPECT_EQ(narrow_stochastic(format, -std::nanf(""), random), format.nan);
      EXPECT_EQ(narrow_stochastic(format, kInfinity, random), format.overflow);
      EXPECT_EQ(narrow_stochastic(format, -kInfinity, random), format.overflow | 1u << (format.bits() - 1));
      EXPECT_EQ(narrow_stochastic(format, std::nextafterf(largest, kInfinity), random), format.max_finite);
      EXPECT_EQ(narrow_stochastic(format, largest * 1.0001f, random), format.max_finite);
      if (format.bias == 127) continue;  // no float is much larger
      EXPECT_EQ(narrow_stochastic(format, largest * 2, random), format.overflow);
    }
  }
}

TEST(RandomBits, LookRandomOverIndicesAndSeeds) {
  constexpr int kCount = 1 << 16;
  constexpr double kBound = 5 * 128;  // five standard deviations of a count of 2^16 fair coins
  for (int bit = 0; bit < 32; ++bit) {
    int ones = 0, same_as_next_index = 0, same_as_next_seed = 0, same_as_next_upper = 0;
    for (uint32_t index = 0; index < kCount; ++index) {
      const auto at = [&](uint64_t seed, uint32_t upper, uint32_t lower) {
        return static_cast<int>(random_bits(random_key(seed, upper), lower) >> bit & 1);
      };
      const int here = at(1, 0, index);
      ones += here;
      same_as_next_index += here == at(1, 0, index + 1);
      same_as_next_seed += here == at(2, 0, index);
      same_as_next_upper += here == at(1, 1, index);
    }
    for (const int count : {ones, same_as_next_index, same_as_next_seed, same_as_next_upper}) {
      EXPECT_LT(std::abs(count - kCount / 2), kBound) << "bit " << bit;
    }
  }
}

TEST(Stochastic, GivesTheDefinitionsBitsForEveryCountIndexAndOutput) {
  for (const Reduction& reduction : stochastic_reductions()) {
    for (const size_t inputs : {1, 2, 5}) {
      if (inputs == 1 && reduction.op != ReduceOp::Avg) continue;  // a copy
      for (const uint64_t first : {uint64_t{0}, uint64_t{77}, (uint64_t{5} << 32) - 300}) {
        std::vector<std::vector<std::byte>> buffers;
        for (size_t k = 0; k < inputs; ++k) buffers.push_back(awkward_elements(reduction.type, 777, 101 + k));
        const std::vector<std::byte> expected = expected_codes(reduction, buffers, first);
        for_each_target([&] {
          for (const size_t count : {1, 2, 3, 15, 64, 131, 299, 777}) {
            std::vector<std::byte> one(expected.size() + 64), two(expected.size() + 64);
            const std::vector<std::byte*> outputs = {one.data() + 3, two.data()};
            const Reducer reducer(reduction);
            reducer(addresses(buffers), outputs, count, 2, first);
            const size_t size_bytes = count * size_of(reduction.type);
            ASSERT_EQ(std::memcmp(outputs[0], expected.data(), size_bytes), 0)
                << describe(reduction) << ", count " << count << " from " << first << ", " << kernel_target();
            ASSERT_EQ(std::memcmp(outputs[1], expected.data(), size_bytes), 0) << describe(reduction);
          }
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Stochastic, GivesTheSameBitsHoweverTheVectorIsCut) {
  constexpr size_t kCount = 5003;
  std::mt19937 random(7);
  for (const Reduction& reduction : stochastic_reductions()) {
    const std::vector<std::vector<std::byte>> inputs = {awkward_elements(reduction.type, kCount, 103),
                                                        awkward_elements(reduction.type, kCount, 107)};
    const Reducer reducer(reduction);
    std::vector<std::byte> whole(inputs[0].size()), pieces(inputs[0].size());
    const size_t size = size_of(reduction.type);
    std::byte* output = whole.data();
    reducer(addresses(inputs), {&output, 1}, kCount, 0, 11);
    for (size_t done = 0; done < kCount;) {
      const size_t count = std::min<size_t>(random() % 250, kCount - done);
      output = pieces.data() + done * size;
      reducer(addresses(inputs, done * size), {&output, 1}, count, random() % 2, 11 + done);
      done += count;
    }
    ASSERT_EQ(pieces, whole) << describe(reduction);
  }
}

// A float32 sum that is narrowed has the bits that the same sum has where it is formed: of one input, an average by 1.
TEST(Stochastic, ConvertsFloatsWithTheBitsOfTheirElements) {
  constexpr size_t kCount = 777;
  constexpr uint64_t kSeed = 0x123456789abcdef;
  std::vector<float> values(kCount);
  std::mt19937 random(127);
  for (size_t i = 0; i < kCount; ++i) {
    const uint32_t bits = i % 3 == 0 ? static_cast<uint32_t>(random()) : (random() % 0x06000000) + 0x3d000000;
    std::memcpy(&values[i], &bits, sizeof bits);
  }
  for (const float special :
       {0.0F, -0.0F, 1e-41F, std::numeric_limits<float>::infinity(), 3.4e38F, std::numeric_limits<float>::quiet_NaN()})
    values[random() % kCount] = special;
  for (const DataType type : kNarrowFloats) {
    const size_t size = size_of(type);
    for (const uint64_t first : {uint64_t{0}, uint64_t{77}, (uint64_t{5} << 32) - 300}) {
      for_each_target([&] {
        for (const size_t count : {1, 2, 3, 15, 64, 131, 299, 777}) {
          std::vector<std::byte> codes(count * size + 1, std::byte{0x55});
          convert_at_random(type, reinterpret_cast<const std::byte*>(values.data()), codes.data(), count,
                            {kSeed, first});
          for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(code_at(type, codes, i), expected_code(type, values[i], kSeed, first + i))
                << name_of(type) << ", " << values[i] << " at " << i << " of " << count << ", " << kernel_target();
          }
          ASSERT_EQ(codes.back(), std::byte{0x55}) << name_of(type) << ", count " << count;
        }
      });
      if (HasFatalFailure()) return;
    }
  }
}

// One third of a code is never a code: over many seeds the mean is the third, within five standard deviations.
TEST(Stochastic, HasTheExactValueAsItsMean) {
  constexpr size_t kCount = 256;
  constexpr size_t kSeeds = 400;
  for (const DataType type : kNarrowFloats) {
    const NarrowFormat& format = format_of(type);
    std::vector<std::byte> input(kCount * size_of(type)), result(input.size());
    const uint32_t code = narrow(format, -1.25f);
    for (size_t i = 0; i < kCount; ++i) std::memcpy(input.data() + i * size_of(type), &code, size_of(type));
    double sum = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::byte* const source = input.data();
      std::byte* const output = result.data();
      const Reducer reducer({type, ReduceOp::Avg, 3, Rounding::Stochastic, seed});
      reducer({&source, 1}, {&output, 1}, kCount);
      for (size_t i = 0; i < kCount; ++i) sum += static_cast<double>(widen(format, code_at(type, result, i)));
    }
    const double step = std::ldexp(1, -2 - format.mantissa_bits);  // 1.25 / 3 lies between 1/4 and 1/2
    const double deviation = 0.5 * step / std::sqrt(static_cast<double>(kCount * kSeeds));
    EXPECT_NEAR(sum / (kCount * kSeeds), -1.25 / 3, 5 * deviation) << name_of(type);
  }
}

TEST(Stochastic, ChangesNoOtherTypeOrOperator) {
  for (const DataType type : kAllTypes) {
    for (const ReduceOp op : kAllOps) {
      if (!is_legal(type, op)) continue;
      if (is_narrow_float(type) && op != ReduceOp::Max && op != ReduceOp::Min) continue;
      const uint32_t divide_by = op == ReduceOp::Avg ? 3 : 0;
      const std::vector<std::vector<std::byte>> inputs = {awkward_elements(type, 99, 109),
                                                          awkward_elements(type, 99, 113)};
      EXPECT_EQ(reduced({type, op, divide_by, Rounding::Stochastic, 5}, inputs, 99),
                reduced({type, op, divide_by}, inputs, 99));
    }
  }
}

}  // namespace
}  // namespace ccom
