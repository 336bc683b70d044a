// SPDX-License-Identifier: Apache-2.0
#include "bench/expected.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>

#include "bench/codecs.h"
#include "bench/inputs.h"

namespace ccom::bench {
namespace {

constexpr size_t kChunk = 1024;  // Elements per iteration; the arrays stay in the L1 cache.

// ---- Arithmetic ---------------------------------------------------------------------------------------------------

// Integers and bool are combined as 64-bit words; the caller's cast wraps.
template <class T>
T combine(Reduction reduction, T a, T b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (reduction) {
    case Reduction::Prod: return static_cast<T>(x * y);
    case Reduction::Max: return std::max(a, b);
    case Reduction::Min: return std::min(a, b);
    case Reduction::Band: return static_cast<T>(x & y);
    case Reduction::Bor: return static_cast<T>(x | y);
    case Reduction::Bxor: return static_cast<T>(x ^ y);
    case Reduction::Land: return static_cast<T>(x != 0 && y != 0);
    case Reduction::Lor: return static_cast<T>(x != 0 || y != 0);
    case Reduction::UserOrdered: return compose(a, b);
    default: return static_cast<T>(x + y);
  }
}

double combine(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::Prod: return a * b;
    case Reduction::Max: return std::max(a, b);
    case Reduction::Min: return std::min(a, b);
    default: return a + b;
  }
}

Complex combine(Reduction reduction, Complex a, Complex b) {
  if (reduction != Reduction::Prod) return {a.real + b.real, a.imaginary + b.imaginary};
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

template <class Codec>
Reduction effective(Reduction reduction) {
  if (!std::is_same_v<Codec, Boolean>) return reduction;
  if (reduction == Reduction::Sum || reduction == Reduction::User) return Reduction::Lor;
  return reduction == Reduction::Prod ? Reduction::Land : reduction;
}

template <class T>
T divided(T sum, int ranks) {
  if constexpr (std::is_unsigned_v<T>) return static_cast<T>(sum / static_cast<uint64_t>(ranks));
  return static_cast<T>(static_cast<int64_t>(sum) / ranks);
}
double divided(double sum, int ranks) { return sum / ranks; }
Complex divided(Complex sum, int ranks) { return {sum.real / ranks, sum.imaginary / ranks}; }

template <class Codec>
typename Codec::Domain scalar_of(int rank) {
  using Domain = typename Codec::Domain;
  if constexpr (std::is_same_v<Domain, double>)
    return rank % 2 == 0 ? 2 : 1;
  else if constexpr (std::is_same_v<Domain, Complex>)
    return rank % 2 == 0 ? Complex{2, 0} : Complex{0, 1};
  else
    return static_cast<Domain>(2 * rank + 3);
}

// ---- Elements -----------------------------------------------------------------------------------------------------

template <class Codec>
using Chunk = std::array<typename Codec::Domain, kChunk>;

template <class Codec>
void generate(const Pattern& pattern, uint64_t iteration, int rank, size_t first, size_t count, Chunk<Codec>& values) {
  const Inputs<Codec> inputs(pattern, iteration, rank);
  for (size_t i = 0; i < count; ++i) values[i] = inputs[first + i];
}

template <class Codec>
void reduce_all(const Pattern& pattern, uint64_t iteration, size_t first, size_t count, Chunk<Codec>& result) {
  const Reduction reduction = effective<Codec>(pattern.reduction);
  Chunk<Codec> values;
  for (int rank = 0; rank < pattern.ranks; ++rank) {
    generate<Codec>(pattern, iteration, rank, first, count, rank == 0 ? result : values);
    Chunk<Codec>& latest = rank == 0 ? result : values;
    if (reduction == Reduction::PreMulSum) {
      for (size_t i = 0; i < count; ++i) latest[i] = combine(Reduction::Prod, latest[i], scalar_of<Codec>(rank));
    }
    if (rank == 0) continue;
    for (size_t i = 0; i < count; ++i) result[i] = combine(reduction, result[i], values[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    if (reduction == Reduction::Avg) result[i] = divided(result[i], pattern.ranks);
    // With a single rank the result is still 0 or 1.
    if (reduction == Reduction::Land || reduction == Reduction::Lor)
      result[i] = combine(reduction, result[i], result[i]);
  }
}

// Within two units in the last place of `expected`; nothing else is close to 0.
bool close(double got, double expected, int mantissa_bits) {
  return expected != 0 && std::abs(got - expected) <= std::ldexp(2.0, std::ilogb(expected) - mantissa_bits);
}

template <class Codec>
bool agree(const Pattern& pattern, typename Codec::Domain got, typename Codec::Domain expected) {
  if (got == expected) return true;
  if (pattern.reduction != Reduction::Avg) return false;
  if constexpr (std::is_same_v<typename Codec::Domain, double>) return close(got, expected, Codec::kMantissaBits);
  if constexpr (std::is_same_v<typename Codec::Domain, Complex>) {
    return (got.real == expected.real || close(got.real, expected.real, Codec::kMantissaBits)) &&
           (got.imaginary == expected.imaginary || close(got.imaginary, expected.imaginary, Codec::kMantissaBits));
  }
  return false;
}

std::string text_of(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}
std::string text_of(Complex value) {
  return text_of(value.real).append("+").append(text_of(value.imaginary)).append("i");
}
template <class T>
requires std::is_integral_v<T> std::string text_of(T value) { return std::to_string(value); }

template <class Codec>
void fill_elements(const Pattern& pattern, const Stretch& stretch, std::byte* data, size_t element_bytes) {
  Chunk<Codec> values;
  for (size_t done = 0; done < stretch.count; done += kChunk) {
    const size_t count = std::min(kChunk, stretch.count - done);
    generate<Codec>(pattern, stretch.iteration, stretch.source, stretch.first + done, count, values);
    for (size_t i = 0; i < count; ++i) Codec::store(data + (done + i) * element_bytes, values[i]);
  }
}

template <class Codec>
Verdict check_elements(const Pattern& pattern, const Stretch& stretch, const std::byte* data, size_t element_bytes) {
  Verdict verdict;
  Chunk<Codec> values;
  for (size_t done = 0; done < stretch.count; done += kChunk) {
    const size_t count = std::min(kChunk, stretch.count - done);
    if (stretch.source == kEveryRank) {
      reduce_all<Codec>(pattern, stretch.iteration, stretch.first + done, count, values);
    } else {
      generate<Codec>(pattern, stretch.iteration, stretch.source, stretch.first + done, count, values);
    }
    for (size_t i = 0; i < count; ++i) {
      const auto got = Codec::load(data + (done + i) * element_bytes);
      if (agree<Codec>(pattern, got, values[i]) || verdict.wrong++ > 0) continue;
      verdict.index = done + i;
      verdict.got = text_of(got);
      verdict.expected = text_of(values[i]);
    }
  }
  return verdict;
}

// ---- Bytes that are only moved ------------------------------------------------------------------------------------

using ByteChunk = std::array<uint64_t, kChunk / 8 + 2>;

// `count` bytes from byte `first` of a rank's input; returns where they begin in `words`.
const std::byte* generate_bytes(const Pattern& pattern, const Stretch& stretch, size_t first, size_t count,
                                ByteChunk& words) {
  const Randomness random(pattern, stretch.iteration, stretch.source);
  const uint64_t mask = pattern.type == ccomBool ? 0x0101010101010101u : ~uint64_t{0};
  const size_t begin = first / 8;
  const size_t end = (first + count + 7) / 8;
  for (size_t word = begin; word < end; ++word) words[word - begin] = random[word] & mask;
  return reinterpret_cast<const std::byte*>(words.data()) + first % 8;
}

std::string hex_of(const std::byte* bytes, size_t count) {
  std::string text = "0x";
  for (size_t i = count; i-- > 0;) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(bytes[i]));
    text += digits.data();
  }
  return text;
}

void fill_bytes(const Pattern& pattern, const Stretch& stretch, std::byte* data, size_t element_bytes) {
  ByteChunk words;
  const size_t total = stretch.count * element_bytes;
  for (size_t done = 0; done < total; done += kChunk) {
    const size_t count = std::min(kChunk, total - done);
    std::memcpy(data + done, generate_bytes(pattern, stretch, stretch.first * element_bytes + done, count, words),
                count);
  }
}

Verdict check_bytes(const Pattern& pattern, const Stretch& stretch, const std::byte* data, size_t element_bytes) {
  Verdict verdict;
  ByteChunk words;
  const size_t total = stretch.count * element_bytes;
  for (size_t done = 0; done < total; done += kChunk) {  // Every element size divides kChunk.
    const size_t count = std::min(kChunk, total - done);
    const std::byte* expected = generate_bytes(pattern, stretch, stretch.first * element_bytes + done, count, words);
    if (std::memcmp(data + done, expected, count) == 0) continue;
    for (size_t i = 0; i < count; i += element_bytes) {
      if (std::memcmp(data + done + i, expected + i, element_bytes) == 0 || verdict.wrong++ > 0) continue;
      verdict.index = (done + i) / element_bytes;
      verdict.got = hex_of(data + done + i, element_bytes);
      verdict.expected = hex_of(expected + i, element_bytes);
    }
  }
  return verdict;
}

}  // namespace

void fill(const Pattern& pattern, const Stretch& stretch, void* data) {
  auto* bytes = static_cast<std::byte*>(data);
  const size_t element_bytes = size_of(pattern.type);
  if (pattern.reduction == Reduction::Move) return fill_bytes(pattern, stretch, bytes, element_bytes);
  with_codec(pattern.type, [&](auto codec) { fill_elements<decltype(codec)>(pattern, stretch, bytes, element_bytes); });
}

Verdict check(const Pattern& pattern, const Stretch& stretch, const void* data) {
  const auto* bytes = static_cast<const std::byte*>(data);
  const size_t element_bytes = size_of(pattern.type);
  if (pattern.reduction == Reduction::Move) return check_bytes(pattern, stretch, bytes, element_bytes);
  return with_codec(pattern.type, [&](auto codec) {
    return check_elements<decltype(codec)>(pattern, stretch, bytes, element_bytes);
  });
}

void write_scalar(const Pattern& pattern, int rank, void* scalar) {
  with_codec(pattern.type, [&](auto codec) {
    using Codec = decltype(codec);
    Codec::store(static_cast<std::byte*>(scalar), scalar_of<Codec>(rank));
  });
}

uint64_t hash_bytes(const void* data, size_t size_bytes) {
  const auto* bytes = static_cast<const std::byte*>(data);
  uint64_t hash = scatter(size_bytes + 1);
  for (size_t done = 0; done < size_bytes; done += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + done, std::min<size_t>(8, size_bytes - done));
    hash = (std::rotl(hash, 29) ^ word) * 0x9e3779b97f4a7c15u;
  }
  return scatter(hash);
}

}  // namespace ccom::bench
