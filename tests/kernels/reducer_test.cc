// SPDX-License-Identifier: Apache-2.0
//
// Shows that a Reducer gives the reference's bits to every output, with every instruction set, for any number of inputs
// and outputs, streaming or not, at any alignment, and with any output in the place of any input.
#include "kernels/kernels.h"

#include "reference.h"
#include "workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

namespace ccom {
namespace {

static_assert(std::is_trivially_copyable_v<Reducer>);

// Memory with a pattern around `size_bytes` bytes that begin `shift` bytes after a line.
class Guarded {
 public:
  Guarded(size_t size_bytes, size_t shift) : memory_(size_bytes + 256, kGuard), size_bytes_(size_bytes) {
    begin_ = memory_.data() + 64 + (-reinterpret_cast<uintptr_t>(memory_.data()) % 64) + shift;
  }
  Guarded(Guarded&&) = default;
  std::byte* data() { return begin_; }
  bool holds(const std::vector<std::byte>& expected) const {
    return std::equal(expected.begin(), expected.end(), begin_, begin_ + size_bytes_);
  }
  bool is_guarded() const {
    const auto is_guard = [](std::byte byte) { return byte == kGuard; };
    const auto* const first = memory_.data();
    return std::all_of(first, static_cast<const std::byte*>(begin_), is_guard) &&
           std::all_of(static_cast<const std::byte*>(begin_ + size_bytes_), first + memory_.size(), is_guard);
  }

 private:
  static constexpr std::byte kGuard{0x5a};
  std::vector<std::byte> memory_;
  size_t size_bytes_;
  std::byte* begin_;
};

// Output m begins shift + m * stride bytes after a line.
struct Place {
  size_t outputs, streamed, shift, stride;
};

void check(const Reduction& reduction, const Buffers& inputs, size_t count, const Place& place) {
  const std::vector<std::byte> expected = reference::reduce(reduction, addresses(inputs), count);
  for_each_target([&] {
    std::vector<Guarded> memory;
    std::vector<std::byte*> outputs;
    for (size_t m = 0; m < place.outputs; ++m) {
      memory.emplace_back(expected.size(), (place.shift + m * place.stride) % 64);
      outputs.push_back(memory.back().data());
    }
    const Reducer reducer(reduction);
    reducer(addresses(inputs), outputs, count, place.streamed);
    for (size_t m = 0; m < place.outputs; ++m) {
      ASSERT_TRUE(memory[m].holds(expected) && memory[m].is_guarded())
          << describe(reduction) << ", " << inputs.size() << " inputs, output " << m << " of " << place.outputs << ", "
          << place.streamed << " streamed, shift " << place.shift << ", stride " << place.stride << ", count " << count
          << ", " << kernel_target();
    }
  });
}

// One of each kind of kernel.
std::vector<Reduction> one_of_each_kind() {
  std::vector<Reduction> result;
  for (const DataType type : kAllTypes) {
    result.push_back({.type = type, .op = ReduceOp::Sum});
    if (is_legal(type, ReduceOp::Avg)) result.push_back({.type = type, .op = ReduceOp::Avg, .divide_by = 3});
  }
  result.push_back({.type = DataType::Complex64, .op = ReduceOp::Prod});
  result.push_back({.type = DataType::Uint8, .op = ReduceOp::Prod});
  result.push_back({.type = DataType::Int32, .op = ReduceOp::Land});
  return result;
}

TEST(Reducer, GivesTheReferenceBitsToEveryOutput) {
  for (const Reduction& reduction : one_of_each_kind()) {
    const Buffers all = awkward_buffers(reduction.type, 70, 333, 71);
    for (const size_t inputs : {1, 2, 3, 4, 8, 70}) {
      const Buffers some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(inputs));
      for (const size_t outputs : {1, 2, 3, 65}) {
        for (const size_t streamed : {size_t{0}, size_t{1}, outputs}) {
          check(reduction, some, 333, {.outputs = outputs, .streamed = streamed, .shift = 0, .stride = 0});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Reducer, GivesTheReferenceBitsForFewElements) {
  for (const Reduction& reduction : one_of_each_kind()) {
    const Buffers all = awkward_buffers(reduction.type, 8, 16, 73);
    for (size_t inputs = 1; inputs <= 8; ++inputs) {
      const Buffers some(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(inputs));
      for (size_t count = 0; count <= 16; ++count) {
        check(reduction, some, count, {.outputs = 1 + count % 2, .streamed = 0, .shift = 8, .stride = 8});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Reducer, StreamsToEveryAlignmentAndWritesNothingElse) {
  for (const Reduction& reduction : one_of_each_kind()) {
    const Buffers inputs = awkward_buffers(reduction.type, 2, 301, 79);
    for (size_t shift = 0; shift < 64; ++shift) {
      for (const size_t stride : {0, 1, 16}) {
        const size_t count = 1 + 20 * (shift % 16);
        check(reduction, inputs, count, {.outputs = 3, .streamed = 2, .shift = shift, .stride = stride});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Reducer, MayWriteOverAllOfItsInputs) {
  constexpr size_t kCount = 1201;
  for (const Reduction& reduction : one_of_each_kind()) {
    const Buffers inputs = awkward_buffers(reduction.type, 3, kCount, 83);
    const std::vector<std::byte> expected = reference::reduce(reduction, addresses(inputs), kCount);
    for_each_target([&] {
      for (const size_t streamed : {0, 1, 3}) {
        Buffers copy = inputs;
        const std::vector<std::byte*> outputs = {copy[2].data(), copy[0].data(), copy[1].data()};
        const Reducer reducer(reduction);
        reducer(addresses(copy), outputs, kCount, streamed);
        for (const auto& output : copy) {
          ASSERT_EQ(output, expected) << describe(reduction) << ", " << streamed << " streamed, " << kernel_target();
        }
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(CopyStreaming, CopiesAnySizeToAnyAlignment) {
  const std::vector<std::byte> source = awkward_elements(DataType::Uint8, 1100, 89);
  for_each_target([&] {
    for (size_t size_bytes = 0; size_bytes < 1030; size_bytes += 1 + size_bytes / 7) {
      for (size_t shift = 0; shift < 64; ++shift) {
        const std::byte* const from = source.data() + (shift * 13) % 64;
        Guarded memory(size_bytes, shift);
        copy_streaming(memory.data(), from, size_bytes);
        ASSERT_TRUE(memory.holds({from, from + size_bytes}) && memory.is_guarded())
            << size_bytes << " bytes at " << shift << ", " << kernel_target();
      }
    }
  });
}

}  // namespace
}  // namespace ccom
