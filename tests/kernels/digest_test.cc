// SPDX-License-Identifier: Apache-2.0
//
// Shows that processors of different kinds give the same bits: digests of what every legal reduction makes of seeded
// inputs, against those of an x86 processor (tests/golden/kernel_digests.txt). CCOM_UPDATE_GOLDEN=1 writes them anew.
//
// Inputs: random bits and awkward values (workload.h), and numbers whose sums lie half-way between two neighbours.
#include "kernels/kernels.h"

#include "workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>

#include "tests/golden.h"
#include "tests/harness/float_environment.h"

namespace ccom {
namespace {

constexpr std::array<size_t, 17> kCounts = {1, 3, 5, 7, 9, 15, 17, 31, 33, 63, 65, 127, 129, 255, 257, 513, 1001};
constexpr std::array<size_t, 4> kInputs = {1, 2, 3, 5};
constexpr size_t kMostCount = kCounts.back(), kMostInputs = kInputs.back();
constexpr uint64_t kSeed = 0x123456789abcdef;

// FNV-1a.
class Digest {
 public:
  void add(const std::vector<std::byte>& bytes) {
    for (const std::byte byte : bytes) value_ = (value_ ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

struct FloatBits {
  int exponent, mantissa;
};
std::optional<FloatBits> float_bits(DataType type) {
  switch (type) {
    case DataType::Float8e4m3: return FloatBits{4, 3};
    case DataType::Float8e5m2: return FloatBits{5, 2};
    case DataType::Float16: return FloatBits{5, 10};
    case DataType::Bfloat16: return FloatBits{8, 7};
    case DataType::Float32:
    case DataType::Complex64: return FloatBits{8, 23};
    case DataType::Float64:
    case DataType::Complex128: return FloatBits{11, 52};
    default: return std::nullopt;
  }
}

// Powers of two, and their neighbours: from 1 down to half of what 1 can be told apart from.
std::vector<std::byte> halves(const FloatBits& bits, size_t size_bytes, uint64_t seed) {
  const size_t step = static_cast<size_t>(1 + bits.exponent + bits.mantissa) / 8;
  const uint64_t one = (uint64_t{1} << (bits.exponent - 1)) - 1;  // its exponent
  const uint64_t smallest = std::min<uint64_t>(static_cast<uint64_t>(bits.mantissa) + 1, one - 1);
  std::mt19937_64 random(seed);
  std::vector<std::byte> result(size_bytes);
  for (size_t at = 0; at < size_bytes; at += step) {
    const uint64_t sign = random() % 2, below = random() % (smallest + 1), last = random() % 2;
    const uint64_t code = sign << (bits.exponent + bits.mantissa) | (one - below) << bits.mantissa | last;
    std::memcpy(result.data() + at, &code, step);
  }
  return result;
}

std::vector<Buffers> inputs_of(DataType type) {
  std::vector<Buffers> result = {awkward_buffers(type, kMostInputs, kMostCount, 71)};
  if (const auto bits = float_bits(type)) {
    Buffers buffers;
    for (size_t k = 0; k < kMostInputs; ++k) buffers.push_back(halves(*bits, kMostCount * size_of(type), 73 + k));
    result.push_back(buffers);
  }
  return result;
}

std::vector<Reduction> all_reductions() {
  std::vector<Reduction> result;
  for (const DataType type : kAllTypes) {
    for (const ReduceOp op : kAllOps) {
      if (!is_legal(type, op)) continue;
      const uint32_t divide_by = op == ReduceOp::Avg ? 3 : 0;
      result.push_back({.type = type, .op = op, .divide_by = divide_by});
      if (is_narrow_float(type)) result.push_back({type, op, divide_by, Rounding::Stochastic, kSeed});
    }
  }
  return result;
}

uint64_t digest_of(const Reduction& reduction) {
  Digest digest;
  for (const Buffers& all : inputs_of(reduction.type)) {
    for (const size_t inputs : kInputs) {
      const Buffers some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(inputs));
      for (const size_t count : kCounts) digest.add(reduced(reduction, some, count));
    }
  }
  return digest.value();
}

uint64_t digest_of_products(DataType type) {
  Digest digest;
  for (const Buffers& all : inputs_of(type)) {
    for (size_t scalar = 0; scalar < 20; ++scalar) {
      std::vector<std::byte> output(all[1].size());
      multiply(type, all[0].data() + scalar * size_of(type), all[1].data(), output.data(), kMostCount);
      digest.add(output);
    }
  }
  return digest.value();
}

std::string line(const std::string& what, uint64_t digest) {
  char text[96];
  std::snprintf(text, sizeof text, "%-28s %016" PRIx64 "\n", what.c_str(), digest);
  return text;
}

std::string all_digests() {
  std::string text;
  for (const Reduction& reduction : all_reductions()) {
    const char* const rounding = reduction.rounding == Rounding::Stochastic ? " stochastic" : "";
    text += line(describe(reduction) + rounding, digest_of(reduction));
  }
  for (const DataType type : kAllTypes) {
    if (type != DataType::Bool) text += line(std::string(name_of(type)) + " multiply", digest_of_products(type));
  }
  return text;
}

TEST(KernelDigests, AreThoseOfEveryOtherProcessor) {
  for_each_target([] {
    SCOPED_TRACE(kernel_target());
    expect_golden("kernel_digests.txt", all_digests());
  });
}

// As after torch.set_flush_denormal(True), by a library of -ffast-math, fesetround() and feenableexcept().
TEST(KernelDigests, U3AreTheSameInEveryFloatingPointEnvironment) {
  for (const FloatControl& control : kOtherFloatControls) {
    SCOPED_TRACE(control.name);
    for_each_target([&control] {
      SCOPED_TRACE(kernel_target());
      const InFloatControl set(control);
      expect_golden("kernel_digests.txt", all_digests());
      EXPECT_TRUE(set.is_unchanged());
    });
  }
}

}  // namespace
}  // namespace ccom
