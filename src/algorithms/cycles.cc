// SPDX-License-Identifier: Apache-2.0
//
// k x k: the Gray code x -> (x1, (x0 - x1) mod k) of the numbers x = x1 k + x0, and its transpose.
//
// Others: links of dimension d are given colour d, so that each colour is a set of disjoint rings. Where the four links
// round a square have the colours A B A B, exchanging them keeps every member at two links of each colour and merges or
// splits rings; exchanges that leave no more rings than before are kept, at places from a fixed random sequence, until
// each colour is one ring. 4 x 4 x 4 takes about 60 exchanges. If the budget runs out, and where a dimension has two
// members: the reflected Gray code, closed by the wrap-around of a dimension of even length. Source: Bae, AlBdaiwi &
// Bose, Edge-disjoint Hamiltonian cycles in two-dimensional torus, IJMMS 25, 2004; Kotzig (1973) and Foregger (1978)
// for their existence.
#include "algorithms/cycles.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace ccom {
namespace {

using Cycles = std::vector<std::vector<uint32_t>>;

Cycles square_cycles(uint32_t k) {
  Cycles cycles(2);
  for (uint32_t x = 0; x < k * k; ++x) {
    const uint32_t first = x / k;
    const uint32_t second = (x % k + k - first) % k;
    cycles[0].push_back(first * k + second);
    cycles[1].push_back(second * k + first);
  }
  return cycles;
}

class Colouring {
 public:
  explicit Colouring(const std::vector<int>& dims) : ndims_(static_cast<uint32_t>(dims.size())) {
    uint32_t stride = 1;
    for (const int size : dims) members_ *= static_cast<uint32_t>(size);
    for (uint32_t d = ndims_; d-- > 0;) {
      const auto size = static_cast<uint32_t>(dims[d]);
      for (uint32_t x = 0; x < members_; ++x) {
        const uint32_t at = x / stride % size;
        next_[d].push_back(x + ((at + 1) % size - at) * stride);
        previous_[d].push_back(x + ((at + size - 1) % size - at) * stride);
      }
      colour_[d].assign(members_, d);
      rings_[d] = members_ / size;
      stride *= size;
    }
  }

  // Exchanges squares until every colour is one ring; false if that takes too long.
  bool merge() {
    constexpr uint64_t kMostVisits = 2'000'000;  // of members, some ten milliseconds
    uint64_t random = 1;
    uint64_t visits = 0;
    while (rings_in_all() > ndims_) {
      if (visits > kMostVisits) return false;
      random = random * 6364136223846793005 + 1442695040888963407;
      const uint64_t pick = random >> 33;
      const auto x = static_cast<uint32_t>(pick % members_);
      const auto d = static_cast<uint32_t>(pick / members_ % ndims_);
      const auto e = static_cast<uint32_t>((d + 1 + pick / members_ / ndims_ % (ndims_ - 1)) % ndims_);
      ++visits;
      if (try_square(x, d, e)) visits += 2 * members_;
    }
    return true;
  }

  std::vector<uint32_t> ring(uint32_t colour) const {
    std::vector<uint32_t> members;
    std::vector<bool> seen(members_);
    walk(colour, 0, seen, [&](uint32_t x) { members.push_back(x); });
    return members;
  }

 private:
  uint32_t rings_in_all() const {
    uint32_t sum = 0;
    for (uint32_t d = 0; d < ndims_; ++d) sum += rings_[d];
    return sum;
  }

  bool try_square(uint32_t x, uint32_t d, uint32_t e) {
    const uint32_t a = colour_[d][x];
    const uint32_t b = colour_[e][x];
    if (a == b || colour_[d][next_[e][x]] != a || colour_[e][next_[d][x]] != b) return false;
    exchange(x, d, e);
    const uint32_t rings_a = count(a);
    const uint32_t rings_b = count(b);
    if (rings_a + rings_b > rings_[a] + rings_[b]) {
      exchange(x, d, e);
    } else {
      rings_[a] = rings_a;
      rings_[b] = rings_b;
    }
    return true;
  }

  void exchange(uint32_t x, uint32_t d, uint32_t e) {
    std::swap(colour_[d][x], colour_[e][x]);
    std::swap(colour_[d][next_[e][x]], colour_[e][next_[d][x]]);
  }

  uint32_t count(uint32_t colour) const {
    std::vector<bool> seen(members_);
    uint32_t rings = 0;
    for (uint32_t x = 0; x < members_; ++x) {
      if (seen[x]) continue;
      ++rings;
      walk(colour, x, seen, [](uint32_t) {});
    }
    return rings;
  }

  // The members of start's ring, in order.
  template <typename Fn>
  void walk(uint32_t colour, uint32_t start, std::vector<bool>& seen, Fn fn) const {
    uint32_t x = start;
    while (true) {
      seen[x] = true;
      fn(x);
      uint32_t unseen = members_;
      for (uint32_t d = 0; d < ndims_; ++d) {
        if (colour_[d][x] == colour && !seen[next_[d][x]]) unseen = next_[d][x];
        if (colour_[d][previous_[d][x]] == colour && !seen[previous_[d][x]]) unseen = previous_[d][x];
      }
      if (unseen == members_) return;
      x = unseen;
    }
  }

  static constexpr size_t kMostDims = 3;
  uint32_t ndims_;
  uint32_t members_ = 1;
  // By dimension and member: its neighbours, and the colour of the link to the next one.
  std::array<std::vector<uint32_t>, kMostDims> next_, previous_, colour_;
  std::array<uint32_t, kMostDims> rings_{};
};

// The reflected Gray code with a dimension of even length outermost.
Cycles snake(const std::vector<int>& dims) {
  size_t even = 0;
  while (even < dims.size() && dims[even] % 2 != 0) ++even;
  if (even == dims.size()) return {};
  std::vector<uint32_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * static_cast<uint32_t>(dims[d + 1]);
  // Words over the dimensions taken so far; each further one runs there and back.
  std::vector<uint32_t> members{0};
  const auto append = [&](size_t d) {
    std::vector<uint32_t> longer;
    for (uint32_t i = 0; i < static_cast<uint32_t>(dims[d]); ++i) {
      for (const uint32_t member : members) longer.push_back(member + i * strides[d]);
      std::ranges::reverse(members);
    }
    members = std::move(longer);
  };
  for (size_t d = dims.size(); d-- > 0;) {
    if (d != even) append(d);
  }
  append(even);
  return {members};
}

}  // namespace

std::vector<std::vector<uint32_t>> hamiltonian_cycles(const std::vector<int>& dims) {
  std::vector<int> several;
  std::ranges::copy_if(dims, std::back_inserter(several), [](int size) { return size > 1; });
  CCOM_ASSERT(several.size() <= 3);
  if (several.empty()) return {};
  if (several.size() == 1) {
    Cycles ring(1);
    for (uint32_t x = 0; x < static_cast<uint32_t>(several[0]); ++x) ring[0].push_back(x);
    return ring;
  }
  if (std::ranges::min(several) == 2) return snake(several);
  if (several.size() == 2 && several[0] == several[1]) return square_cycles(static_cast<uint32_t>(several[0]));
  Colouring colouring(several);
  if (!colouring.merge()) return snake(several);
  Cycles cycles;
  for (uint32_t colour = 0; colour < several.size(); ++colour) cycles.push_back(colouring.ring(colour));
  return cycles;
}

}  // namespace ccom
