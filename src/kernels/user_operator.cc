// SPDX-License-Identifier: Apache-2.0
#include "kernels/user_operator.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/assert.h"

namespace ccom {
namespace {

// Two of these and an input fit into any first-level cache.
constexpr size_t kTileBytes = size_t{8} << 10;

struct alignas(64) Tile {
  std::array<std::byte, kTileBytes> bytes;
};

bool is_aligned(const std::byte* memory, size_t element_bytes) {
  return reinterpret_cast<uintptr_t>(memory) % element_bytes == 0;
}

}  // namespace

// From the right: the function overwrites its right operand. In a tile of its own, so that outputs may be inputs.
void UserOperator::combine(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, size_t count,
                           DataType type) {
  CCOM_ASSERT(!inputs.empty() && !outputs.empty());
  const size_t element_bytes = size_of(type), most = kTileBytes / element_bytes;
  Tile result, operand;  // not initialised
  for (size_t done = 0; done < count; done += most) {
    const size_t now = std::min(most, count - done), offset = done * element_bytes, size_bytes = now * element_bytes;
    std::memcpy(result.bytes.data(), inputs.back() + offset, size_bytes);
    for (size_t i = inputs.size() - 1; i-- > 0;) {
      const std::byte* in = inputs[i] + offset;
      if (!is_aligned(in, element_bytes)) {
        std::memcpy(operand.bytes.data(), in, size_bytes);
        in = operand.bytes.data();
      }
      apply(in, result.bytes.data(), now, type);
    }
    for (std::byte* const output : outputs) std::memcpy(output + offset, result.bytes.data(), size_bytes);
  }
}

void UserOperator::apply(const std::byte* in, std::byte* inout, size_t count, DataType type) {
  if (has_failed()) return;
  Status status = apply_(in, inout, count, type);
  if (status.is_ok()) return;
  const Lock lock(mutex_);
  if (failure_.is_ok()) failure_ = std::move(status);
  has_failed_.store(true, std::memory_order_release);
}

Status UserOperator::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

}  // namespace ccom
