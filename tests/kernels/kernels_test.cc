// SPDX-License-Identifier: Apache-2.0
//
// Shows that every legal reduction gives the reference's bits with every instruction set, for any number of inputs, any
// count, any alignment, in place, and cut into calls at any place.
#include "kernels/kernels.h"

#include "hwy/targets.h"
#include "kernels/instruction_sets.h"
#include "reference.h"
#include "workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <iterator>
#include <numeric>
#include <random>
#include <set>

namespace ccom {
namespace {

// Every legal pair, averages also as "not the last combination" and with an odd divisor.
std::vector<Reduction> legal_reductions() {
  std::vector<Reduction> result;
  for (const DataType type : kAllTypes) {
    for (const ReduceOp op : kAllOps) {
      if (!is_legal(type, op)) continue;
      result.push_back({.type = type, .op = op});
      if (op == ReduceOp::Avg) {
        result.push_back({.type = type, .op = op, .divide_by = 3});
        result.push_back({.type = type, .op = op, .divide_by = 1000});
      }
    }
  }
  return result;
}

TEST(Legality, IsTheTableOfTheApi) {
  using enum ReduceOp;
  const std::set<ReduceOp> integers(kAllOps.begin(), kAllOps.end());
  const std::set<ReduceOp> floats = {Sum, Prod, Max, Min, Avg};
  const std::set<ReduceOp> complex = {Sum, Prod, Avg};
  const std::set<ReduceOp> bools = {Sum, Prod, Max, Min, Band, Bor, Bxor, Land, Lor};
  size_t legal = 0;
  for (const DataType type : kAllTypes) {
    const bool is_complex = type == DataType::Complex64 || type == DataType::Complex128;
    const bool is_float = is_narrow_float(type) || type == DataType::Float32 || type == DataType::Float64;
    const auto& expected = is_complex ? complex : is_float ? floats : type == DataType::Bool ? bools : integers;
    for (const ReduceOp op : kAllOps) {
      EXPECT_EQ(is_legal(type, op), expected.contains(op)) << describe({.type = type, .op = op});
      legal += is_legal(type, op);
    }
  }
  EXPECT_EQ(legal, 8u * 10 + 6 * 5 + 2 * 3 + 9);
}

TEST(Legality, KnowsNoOtherNumbers) {
  EXPECT_FALSE(is_legal(static_cast<DataType>(12), ReduceOp::Sum));
  EXPECT_FALSE(is_legal(static_cast<DataType>(255), ReduceOp::Sum));
  EXPECT_FALSE(is_legal(DataType::Float32, static_cast<ReduceOp>(5)));
  EXPECT_FALSE(is_legal(DataType::Float32, static_cast<ReduceOp>(64)));
}

TEST(LegalityDeathTest, AnIllegalReductionAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Buffers inputs = awkward_buffers(DataType::Bool, 2, 1, 1);
  EXPECT_DEATH(reduced({.type = DataType::Bool, .op = ReduceOp::Avg}, inputs, 1), "is_legal");
}

TEST(Kernels, RunWithMoreThanOneInstructionSet) {
  const std::string best = kernel_target();
  const std::vector<std::string> targets = for_each_target([] {});
  EXPECT_EQ(kernel_target(), best);
  EXPECT_EQ(targets.front(), best);
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)  // for which one is compiled (src/kernels/CMakeLists.txt)
  EXPECT_GE(targets.size(), 2u);
#endif
  for (const std::string& target : targets) std::cout << "instruction set " << target << "\n";
}

#if HWY_ARCH_X86
TEST(Kernels, AreChosenByWhatHighwayFindsInThisMachine) {
  for (const int64_t target : {int64_t{HWY_AVX3}, int64_t{HWY_AVX2}})
    EXPECT_EQ(has_instruction_set(target), (hwy::SupportedTargets() & target) != 0) << hwy::TargetName(target);
}
#endif

TEST(Kernels, GiveTheReferenceBitsForEveryLegalPairAndOneToNineInputs) {
  constexpr size_t kCount = 331;
  for (const Reduction& reduction : legal_reductions()) {
    const Buffers all = awkward_buffers(reduction.type, 9, kCount, 17);
    for (size_t inputs = 1; inputs <= 9; ++inputs) {
      const Buffers some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(inputs));
      const std::vector<std::byte> expected = reference::reduce(reduction, addresses(some), kCount);
      for_each_target([&] {
        ASSERT_EQ(reduced(reduction, some, kCount), expected)
            << describe(reduction) << ", " << inputs << " inputs, " << kernel_target();
      });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Kernels, GiveTheReferenceBitsForEveryCount) {
  for (const Reduction& reduction : legal_reductions()) {
    const Buffers inputs = awkward_buffers(reduction.type, 3, 9001, 23);
    const std::vector<std::byte> expected = reference::reduce(reduction, addresses(inputs), 9001);
    // Around every block of every instruction set, and around the tiles of integer averages.
    std::vector<size_t> counts(271);
    std::iota(counts.begin(), counts.end(), 0);
    for (const size_t around : {512, 1024, 4096}) counts.insert(counts.end(), {around - 1, around, around + 1});
    counts.push_back(9001);
    for_each_target([&] {
      for (const size_t count : counts) {
        const std::vector<std::byte> actual = reduced(reduction, inputs, count);
        ASSERT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin()))
            << describe(reduction) << ", count " << count << ", " << kernel_target();
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Kernels, AcceptEveryAlignmentAndWriteNothingElse) {
  constexpr size_t kCount = 77;
  for (const DataType type : kAllTypes) {
    const ReduceOp op = type == DataType::Bool ? ReduceOp::Lor : ReduceOp::Sum;
    const Reduction reduction{.type = type, .op = op};
    const size_t size_bytes = kCount * size_of(type);
    const Buffers inputs = awkward_buffers(type, 2, kCount, 31);
    const std::vector<std::byte> expected = reference::reduce(reduction, addresses(inputs), kCount);
    for_each_target([&] {
      for (size_t shift = 0; shift < 64; ++shift) {
        alignas(64) std::byte memory[3][77 * 16 + 192];
        std::memset(memory, 0x5a, sizeof(memory));
        std::byte* const output = memory[2] + 64 + (shift * 13) % 64;
        std::memcpy(memory[0] + shift, inputs[0].data(), size_bytes);
        std::memcpy(memory[1] + (shift * 7) % 64, inputs[1].data(), size_bytes);
        const std::byte* const sources[] = {memory[0] + shift, memory[1] + (shift * 7) % 64};
        reduce(reduction, sources, output, kCount);
        ASSERT_EQ(std::memcmp(output, expected.data(), size_bytes), 0) << describe(reduction) << " at " << shift;
        for (std::byte* byte = memory[2]; byte < std::end(memory[2]); ++byte) {
          if (byte >= output && byte < output + size_bytes) continue;
          ASSERT_EQ(*byte, std::byte{0x5a}) << describe(reduction) << " at " << shift;
        }
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Kernels, MayWriteOverAnyOneOfTheirInputs) {
  constexpr size_t kCount = 1201;
  for (const Reduction& reduction : legal_reductions()) {
    const Buffers inputs = awkward_buffers(reduction.type, 4, kCount, 41);
    const std::vector<std::byte> expected = reference::reduce(reduction, addresses(inputs), kCount);
    for_each_target([&] {
      for (size_t place = 0; place < inputs.size(); ++place) {
        Buffers copy = inputs;
        reduce(reduction, addresses(copy), copy[place].data(), kCount);
        ASSERT_EQ(copy[place], expected) << describe(reduction) << " over input " << place;
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(Kernels, GiveTheSameBitsHoweverTheVectorIsCut) {
  constexpr size_t kCount = 3001;
  std::mt19937 random(5);
  for (const Reduction& reduction : legal_reductions()) {
    const Buffers inputs = awkward_buffers(reduction.type, 2, kCount, 43);
    const std::vector<std::byte> whole = reduced(reduction, inputs, kCount);
    const size_t size = size_of(reduction.type);
    std::vector<std::byte> pieces(whole.size());
    for (size_t done = 0; done < kCount;) {
      const size_t count = std::min<size_t>(random() % 130, kCount - done);
      reduce(reduction, addresses(inputs, done * size), pieces.data() + done * size, count);
      done += count;
    }
    ASSERT_EQ(pieces, whole) << describe(reduction);
  }
}

TEST(Kernels, GiveTheSameBitsForTwoInputsInEitherOrder) {
  for (const Reduction& reduction : legal_reductions()) {
    Buffers inputs = awkward_buffers(reduction.type, 2, 2000, 47);
    const std::vector<std::byte> one_way = reduced(reduction, inputs, 2000);
    std::swap(inputs[0], inputs[1]);
    ASSERT_EQ(reduced(reduction, inputs, 2000), one_way) << describe(reduction);
  }
}

TEST(Kernels, CombineManyInputs) {
  for (const DataType type : {DataType::Float32, DataType::Bfloat16, DataType::Int8}) {
    const Reduction reduction{.type = type, .op = ReduceOp::Max};
    const Buffers inputs = awkward_buffers(type, 100, 301, 53);
    EXPECT_EQ(reduced(reduction, inputs, 301), reference::reduce(reduction, addresses(inputs), 301));
  }
}

TEST(Multiply, RoundsScalarTimesElementOnce) {
  constexpr size_t kCount = 4999;
  for (const DataType type : kAllTypes) {
    if (type == DataType::Bool) continue;
    const size_t size = size_of(type);
    const std::vector<std::byte> input = awkward_elements(type, kCount, 61);
    const std::vector<std::byte> scalars = awkward_elements(type, 20, 67);
    for (size_t s = 0; s < 20; ++s) {
      Buffers factors = {{}, input};
      for (size_t i = 0; i < kCount; ++i) {
        factors[0].insert(factors[0].end(), scalars.begin() + static_cast<std::ptrdiff_t>(s * size),
                          scalars.begin() + static_cast<std::ptrdiff_t>((s + 1) * size));
      }
      const auto expected = reference::reduce({.type = type, .op = ReduceOp::Prod}, addresses(factors), kCount);
      for_each_target([&] {
        std::vector<std::byte> output(input.size());
        multiply(type, scalars.data() + s * size, input.data(), output.data(), kCount);
        ASSERT_EQ(output, expected) << name_of(type) << ", " << kernel_target();
        output = input;
        multiply(type, scalars.data() + s * size, output.data(), output.data(), kCount);
        ASSERT_EQ(output, expected) << name_of(type) << " in place, " << kernel_target();
      });
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Multiply, OfNothingDoesNothing) {
  const float scalar = 2;
  multiply(DataType::Float32, reinterpret_cast<const std::byte*>(&scalar), nullptr, nullptr, 0);
}

}  // namespace
}  // namespace ccom
