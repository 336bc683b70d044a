// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <cstring>
#include <random>

namespace ccom {
namespace {

// Awkward values of one-byte, two-byte, ... elements as their bits, whatever the type makes of them.
std::vector<uint64_t> awkward_bits(DataType type) {
  switch (type) {
    case DataType::Float16:
      return {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xffff};
    case DataType::Bfloat16:
      return {0, 0x8000, 1, 0x807f, 0x80, 0x3f80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xffff};
    case DataType::Float8e4m3: return {0, 0x80, 1, 0x81, 7, 8, 0x38, 0x7e, 0xfe, 0x7f, 0xff};
    case DataType::Float8e5m2: return {0, 0x80, 1, 0x81, 3, 4, 0x3c, 0x7b, 0xfb, 0x7c, 0xfc, 0x7d, 0xfe, 0xff};
    case DataType::Float32:
    case DataType::Complex64:
      return {0,          0x80000000, 1,          0x80000001, 0x7fffff,   0x800000,   0x3f800000, 0x7f7fffff,
              0xff7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff};
    case DataType::Float64:
    case DataType::Complex128:
      return {0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x000fffffffffffff,
              0x3ff0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
              0xfff0000000000000, 0x7ff0000000000001, 0xfff8000000000000, 0xffffffffffffffff};
    default: return {0, 1, 2, ~0ull, ~1ull, 0x7f, 0x80, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, ~0ull >> 1, 1ull << 63};
  }
}

size_t scalar_bytes(DataType type) {
  const bool complex = type == DataType::Complex64 || type == DataType::Complex128;
  return complex ? size_of(type) / 2 : size_of(type);
}

}  // namespace

std::string describe(const Reduction& reduction) {
  return std::string(name_of(reduction.type)) + " " + std::string(name_of(reduction.op)) + "/" +
         std::to_string(reduction.divide_by);
}

std::vector<std::string> for_each_target(const std::function<void()>& body) {
  std::vector<std::string> names;
  const std::vector<const char*> targets = kernel_targets();
  for (const char* const target : targets) {
    use_kernel_target(target);
    names.emplace_back(kernel_target());
    body();
  }
  use_kernel_target(targets.front());
  return names;
}

std::vector<std::byte> awkward_elements(DataType type, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<uint64_t> awkward = awkward_bits(type);
  const size_t step = scalar_bytes(type);
  std::vector<std::byte> bytes(count * size_of(type));
  for (size_t at = 0; at < bytes.size(); at += step) {
    uint64_t bits = random();
    if (random() % 4 == 0) bits = awkward[random() % awkward.size()];
    std::memcpy(bytes.data() + at, &bits, step);
  }
  return bytes;
}

Buffers awkward_buffers(DataType type, size_t inputs, size_t count, uint64_t seed) {
  Buffers buffers;
  for (size_t k = 0; k < inputs; ++k) buffers.push_back(awkward_elements(type, count, seed + k));
  return buffers;
}

std::vector<const std::byte*> addresses(const Buffers& buffers, size_t offset) {
  std::vector<const std::byte*> result;
  for (const auto& buffer : buffers) result.push_back(buffer.data() + offset);
  return result;
}

std::vector<std::byte> reduced(const Reduction& reduction, const Buffers& inputs, size_t count) {
  std::vector<std::byte> output(count * size_of(reduction.type), std::byte{0xa5});
  reduce(reduction, addresses(inputs), output.data(), count);
  return output;
}

const NarrowFormat& format_of(DataType type) {
  switch (type) {
    case DataType::Float16: return kFloat16;
    case DataType::Bfloat16: return kBfloat16;
    case DataType::Float8e4m3: return kFloat8e4m3;
    default: return kFloat8e5m2;
  }
}

}  // namespace ccom
