// SPDX-License-Identifier: Apache-2.0
//
// Sums of cache lines, stored in one or two places, past the caches or not.
#pragma once

#include <cstddef>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace limit {

constexpr size_t kLineBytes = 64;
constexpr size_t kLineFloats = kLineBytes / sizeof(float);
typedef float Line __attribute__((vector_size(64), aligned(4), may_alias));

struct Target {
  float* at;
  bool is_streamed;
};

inline void store(float* at, const Line& line) { *reinterpret_cast<Line*>(at) = line; }

// `at` begins a line.
inline void stream(float* at, const Line& line) {
#if defined(__AVX512F__)
  _mm512_stream_ps(at, reinterpret_cast<const __m512_u&>(line));
#elif defined(__x86_64__)
  for (size_t i = 0; i < kLineFloats; i += 4)
    _mm_stream_ps(at + i, _mm_loadu_ps(reinterpret_cast<const float*>(&line) + i));
#else
  store(at, line);
#endif
}

// Streamed stores come before flags that are stored after it.
inline void finish_streams() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// kSources: how many, if that is known at compile time; else 0.
template <size_t kSources>
void add_some(const float* const* sources, size_t number, const Target* targets, size_t outputs, size_t count) {
  constexpr size_t kLines = 4;
  const size_t all = kSources == 0 ? number : kSources;
  size_t i = 0;
  for (; i + kLines * kLineFloats <= count; i += kLines * kLineFloats) {
    Line sums[kLines];
    for (size_t k = 0; k < kLines; ++k) sums[k] = *reinterpret_cast<const Line*>(sources[0] + i + k * kLineFloats);
    for (size_t s = 1; s < all; ++s) {
      for (size_t k = 0; k < kLines; ++k) sums[k] += *reinterpret_cast<const Line*>(sources[s] + i + k * kLineFloats);
    }
    for (size_t t = 0; t < outputs; ++t) {
      float* const at = targets[t].at + i;
      if (targets[t].is_streamed) {
        for (size_t k = 0; k < kLines; ++k) stream(at + k * kLineFloats, sums[k]);
      } else {
        for (size_t k = 0; k < kLines; ++k) store(at + k * kLineFloats, sums[k]);
      }
    }
  }
  for (; i < count; ++i) {
    float sum = sources[0][i];
    for (size_t s = 1; s < all; ++s) sum += sources[s][i];
    for (size_t t = 0; t < outputs; ++t) targets[t].at[i] = sum;
  }
}

// Adds `count` elements of all sources. Targets that are streamed begin at a line.
inline void add_lines(const float* const* sources, size_t number, const Target* targets, size_t outputs, size_t count) {
  if (number == 1) {
    add_some<1>(sources, number, targets, outputs, count);
  } else if (number == 2) {
    add_some<2>(sources, number, targets, outputs, count);
  } else {
    add_some<0>(sources, number, targets, outputs, count);
  }
}

// Stores a byte to every line of what nobody will read any more: who stores there next takes the line from one cache
// alone. On some processors that is several times as fast as from two. `at` begins a line.
inline void claim_lines(const float* at, size_t count) {
  auto* bytes = reinterpret_cast<volatile char*>(const_cast<float*>(at));
  for (size_t i = 0; i < count * sizeof(float); i += kLineBytes) bytes[i] = 0;
}

}  // namespace limit
