// SPDX-License-Identifier: Apache-2.0
#include "bench/memory_probes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/report.h"
#include "bench/statistics.h"

namespace ccom::bench {
namespace {

constexpr size_t kMostSamples = 2000;
constexpr size_t kLeastSamples = 5;
constexpr size_t kWarmUp = 3;
// So short that memcpy copies by vectors, neither by string instructions nor past the caches.
constexpr size_t kPiece = 1 << 10;
constexpr size_t kLeastBeyond = size_t{64} << 20, kMostBeyond = size_t{512} << 20;

struct FreePages {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Pages = std::unique_ptr<std::byte, FreePages>;

// Written to, so that it has pages. Null: too little memory.
Pages pages(size_t size_bytes) {
  constexpr size_t kPage = 4096;
  Pages memory(static_cast<std::byte*>(std::aligned_alloc(kPage, (size_bytes + kPage - 1) / kPage * kPage)));
  if (memory) std::memset(memory.get(), 1, size_bytes);
  return memory;
}

// Per byte, of `run` over so many; 0 if it cannot be told.
template <class Run>
double byte_ns(size_t size_bytes, Run run) {
  const auto sample = [&]() -> std::optional<double> {
    const ProbeClock::time_point begin = ProbeClock::now();
    run();
    return ns_since(begin);
  };
  return median_sample(sample).value_or(0) / static_cast<double>(size_bytes);
}

ByteCosts byte_costs(size_t size_bytes) {
  const Pages memory = pages(size_bytes);
  if (!memory) return {};
  return {.load = byte_ns(size_bytes, [&] { load_bytes(memory.get(), size_bytes); }),
          .store = byte_ns(size_bytes, [&] { store_bytes(memory.get(), size_bytes); })};
}

size_t bytes_beyond(const CacheSizes& caches) {
  const size_t wanted = std::clamp(4 * caches.last, kLeastBeyond, kMostBeyond);
  return wanted <= available_memory() / 4 ? wanted : 0;
}

double streamed_store_ns(size_t size_bytes) {
#if defined(__x86_64__)
  const Pages memory = pages(size_bytes);
  if (!memory) return 0;
  return byte_ns(size_bytes, [&] {
    const __m128i value = _mm_set1_epi8(2);
    for (size_t at = 0; at < size_bytes; at += sizeof value)
      _mm_stream_si128(reinterpret_cast<__m128i*>(memory.get() + at), value);
    _mm_sfence();
  });
#else
  static_cast<void>(size_bytes);
  return 0;
#endif
}

void add_plainly(float* sum, const float* a, const float* b, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void add_by_avx2(float* sum, const float* a, const float* b, size_t count) {
  for (size_t i = 0; i + 8 <= count; i += 8)
    _mm256_storeu_ps(sum + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
}
#endif

void add(float* sum, const float* a, const float* b, size_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return add_by_avx2(sum, a, b, count);
#endif
  add_plainly(sum, a, b, count);
}

// Three vectors in the second cache: beyond loading two of them and storing the third.
double reduced_ns(const CacheSizes& caches, const ByteCosts& cached) {
  const size_t count = caches.second / 8 / sizeof(float) / 64 * 64;
  std::vector<float> a(count, 1), b(count, 2), sum(count);
  const size_t size_bytes = count * sizeof(float);
  const double all = byte_ns(size_bytes, [&] { add(sum.data(), a.data(), b.data(), count); });
  return (all - 2 * cached.load - cached.store) / 2;
}

}  // namespace

std::optional<double> median_sample(const std::function<std::optional<double>()>& sample) {
  std::vector<double> samples;
  const ProbeClock::time_point begin = ProbeClock::now();
  for (size_t i = 0; i < kMostSamples; ++i) {
    const std::optional<double> value = sample();
    if (!value) return std::nullopt;
    if (i >= kWarmUp) samples.push_back(*value);
    if (samples.size() >= kLeastSamples && ns_since(begin) > kProbeBudgetNs) break;
  }
  std::ranges::sort(samples);
  return percentile(samples, 0.5);
}

void load_bytes(const std::byte* from, size_t size_bytes) {
  // No byte of these buffers is 255: the search reads all of them.
  [[maybe_unused]] const void* volatile found = std::memchr(from, 255, size_bytes);
}

void store_bytes(std::byte* to, size_t size_bytes) {
  alignas(64) static const std::array<std::byte, kPiece> zeros{};
  for (size_t at = 0; at < size_bytes; at += kPiece)
    std::memcpy(to + at, zeros.data(), std::min(kPiece, size_bytes - at));
}

CacheSizes cache_sizes() {
  CacheSizes sizes;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const auto ask = [](int name, size_t& size) {
    const long answer = ::sysconf(name);
    if (answer > 0) size = static_cast<size_t>(answer);
  };
  ask(_SC_LEVEL1_DCACHE_SIZE, sizes.first);
  ask(_SC_LEVEL2_CACHE_SIZE, sizes.second);
  ask(_SC_LEVEL3_CACHE_SIZE, sizes.last);
#endif
  return sizes;
}

OwnMemoryCosts measure_own_memory(const CacheSizes& caches) {
  OwnMemoryCosts costs;
  costs.cached = byte_costs(caches.second / 2);
  costs.reduced = reduced_ns(caches, costs.cached);
  // In the middle of what is in the last cache and not in the second.
  const auto middle =
      static_cast<size_t>(std::sqrt(static_cast<double>(caches.second) * static_cast<double>(caches.last)));
  if (middle > 2 * caches.second) costs.far = byte_costs(middle / kPiece * kPiece);
  const size_t beyond = bytes_beyond(caches);
  if (beyond == 0) return costs;
  costs.memory = byte_costs(beyond);
  costs.streamed_store = streamed_store_ns(beyond);
  return costs;
}

}  // namespace ccom::bench
