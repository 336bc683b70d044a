// SPDX-License-Identifier: Apache-2.0
//
// What a core takes to load and store bytes of memory that it has for itself, and the tools to measure such times.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

namespace ccom::bench {

using ProbeClock = std::chrono::steady_clock;
inline double ns_since(ProbeClock::time_point begin) {
  return std::chrono::duration<double, std::nano>(ProbeClock::now() - begin).count();
}

inline constexpr double kProbeBudgetNs = 1e8;  // about what one figure may take

// The median of what `sample` returns in about a tenth of a second, after a few whose results are dropped. nullopt if
// it once returns nothing.
std::optional<double> median_sample(const std::function<std::optional<double>()>& sample);

// Whole vectors of the processor, nothing is kept. Stored bytes come from the first cache.
void load_bytes(const std::byte* from, size_t size_bytes);
void store_bytes(std::byte* to, size_t size_bytes);

struct CacheSizes {
  size_t first = size_t{48} << 10;
  size_t second = size_t{2} << 20;
  size_t last = size_t{32} << 20;
};
CacheSizes cache_sizes();  // Of this machine, or the defaults.

// Nanoseconds per byte.
struct ByteCosts {
  double load = 0, store = 0;
};
struct OwnMemoryCosts {
  ByteCosts cached, far, memory;  // In the second cache, in the last one, beyond.
  double streamed_store = 0;      // 0: not measured here
  double reduced = 0;             // An operand's byte of a sum, beyond loading it.
};
// Takes about a second.
OwnMemoryCosts measure_own_memory(const CacheSizes& caches);

}  // namespace ccom::bench
