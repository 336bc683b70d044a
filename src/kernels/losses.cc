// SPDX-License-Identifier: Apache-2.0
//
// What encoding as scaled blocks loses.
#include "kernels/kernels.h"
#include "kernels/scaled_blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace ccom {
namespace {

constexpr size_t kAtATime = 4 * kBlockValues;  // numbers whose loss is found in the first-level cache

// Not inlined: their own arithmetic stays where the environment is set.
[[gnu::noinline]] void subtract_decoded(DataType type, const std::byte* values, const std::byte* blocks,
                                        std::byte* loss, size_t count) {
  std::array<float, kAtATime> given, kept;
  for (size_t begin = 0; begin < count; begin += kAtATime) {
    const size_t now = std::min(kAtATime, count - begin);
    std::memcpy(given.data(), values + begin * sizeof(float), now * sizeof(float));
    convert(type, DataType::Float32, blocks + begin / kBlockValues * size_of(type),
            reinterpret_cast<std::byte*>(kept.data()), now);
    for (size_t i = 0; i < now; ++i) {
      const float lost = given[i] - kept[i];
      given[i] = std::abs(lost) <= std::numeric_limits<float>::max() ? lost : 0;
    }
    std::memcpy(loss + begin * sizeof(float), given.data(), now * sizeof(float));
  }
}

[[gnu::noinline]] void reduce_and_subtract(const Reduction& reduction, std::span<const std::byte* const> inputs,
                                           std::byte* output, std::byte* loss, size_t count) {
  const Reducer reducer(reduction);
  std::array<float, kAtATime> sum, next, lost;
  std::vector<const std::byte*> from(inputs.begin(), inputs.end());
  const auto bytes_of = [](auto& numbers) { return reinterpret_cast<std::byte*>(numbers.data()); };
  for (size_t begin = 0; begin < count; begin += kAtATime) {
    const size_t now = std::min(kAtATime, count - begin);
    const size_t blocks = elements_for(reduction.type, now), bytes = blocks * size_of(reduction.type);
    convert(reduction.type, DataType::Float32, from[0], bytes_of(sum), now);
    for (size_t i = 1; i < from.size(); ++i) {
      convert(reduction.type, DataType::Float32, from[i], bytes_of(next), now);
      for (size_t j = 0; j < now; ++j) sum[j] += next[j];
    }
    const auto divisor = static_cast<float>(std::max(reduction.divide_by, 1U));
    for (size_t j = 0; j < now; ++j) sum[j] /= divisor;
    reducer(from, {&output, 1}, blocks);
    subtract_decoded(reduction.type, bytes_of(sum), output, bytes_of(lost), now);
    std::memcpy(next.data(), loss + begin * sizeof(float), now * sizeof(float));
    for (size_t j = 0; j < now; ++j) next[j] += lost[j] * divisor;
    std::memcpy(loss + begin * sizeof(float), next.data(), now * sizeof(float));
    for (const std::byte*& input : from) input += bytes;
    output += bytes;
  }
}

}  // namespace

void write_loss(DataType type, const std::byte* values, const std::byte* blocks, std::byte* loss, size_t count) {
  const DefaultFloatEnvironment environment;
  subtract_decoded(type, values, blocks, loss, count);
}

void reduce_with_loss(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* output,
                      std::byte* loss, size_t count) {
  const DefaultFloatEnvironment environment;
  reduce_and_subtract(reduction, inputs, output, loss, count);
}

}  // namespace ccom
