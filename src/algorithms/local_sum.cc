// SPDX-License-Identifier: Apache-2.0
#include "algorithms/local_sum.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {

namespace {

uint32_t device_count(const std::vector<int>& dims) {
  uint32_t devices = 1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) devices *= static_cast<uint32_t>(dims[d]);
  return devices;
}

}  // namespace

uint32_t LocalSum::number_of(uint32_t member, const std::vector<int>& dims) {
  const auto cores = static_cast<uint32_t>(dims.back());
  return member % cores * device_count(dims) + member / cores;
}

uint32_t LocalSum::member_of(uint32_t number, const std::vector<int>& dims) {
  const uint32_t devices = device_count(dims);
  return number % devices * static_cast<uint32_t>(dims.back()) + number / devices;
}

void LocalSum::add(uint32_t adding, bool completes) {
  CCOM_ASSERT(!dims_.empty() && adding >= 1 && adding <= group_.size());
  values_.assign(group_.size(), 0);
  for (uint32_t number = 0; number < adding; ++number) values_[member_of(number, dims_)] = 1;
  total_ = adding;
  completes_ = completes;
  for (size_t d = dims_.size(); d-- > 0;) {
    const auto dim = static_cast<uint8_t>(d);
    if (dims_[d] == 1) continue;
    exchanges(dim) ? exchange(dim) : gather(dim);
  }
}

// 0-1 and 2-3, then 1-2 and 3-0; two members: 0-1.
void LocalSum::exchange(uint8_t dim) {
  const auto size = static_cast<uint32_t>(dims_[dim]);
  for (uint32_t round = 0; 2U << round <= size; ++round) {
    const auto partner_of = [&](uint32_t member) {
      const Grid grid(dims_, member);
      const uint32_t at = grid.coordinate(dim);
      return grid.at(dim, (at % 2 == round % 2 ? at + 1 : at + size - 1) % size);
    };
    exchange_with(partner_of(group_.me));
    std::vector<uint32_t> sums(values_.size());
    for (uint32_t m = 0; m < sums.size(); ++m) sums[m] = values_[m] + values_[partner_of(m)];
    values_ = std::move(sums);
  }
}

void LocalSum::exchange_with(uint32_t partner) {
  const uint32_t mine = values_[group_.me];
  const uint32_t theirs = values_[partner];
  const Rank peer = group_.rank(partner);
  if (mine > 0 && theirs > 0) {
    value_.combine(peer, completed(mine + theirs));
  } else if (mine > 0) {
    value_.give(peer);
  } else if (theirs > 0) {
    value_.take(peer, completed(theirs));
  }
}

// Everybody gets the values of all members of its line that have one, and sums them in their order.
void LocalSum::gather(uint8_t dim) {
  const Grid grid(dims_, group_.me);
  const uint32_t size = grid.size(dim);
  const uint32_t me = grid.coordinate(dim);
  const auto member = [&](uint32_t at) { return grid.at(dim, at % size); };
  std::vector<uint32_t> slot_of(size, UINT32_MAX);
  uint32_t slots = 0;
  for (uint32_t at = 0; at < size; ++at) {
    if (values_[member(at)] > 0) slot_of[at] = slots++;
  }
  if (slots > 0) {
    value_.open_slots(slots, slot_of[me]);
    const auto pass = [&](uint32_t to, uint32_t what) {
      if (slot_of[what % size] != UINT32_MAX) value_.give_slot(group_.rank(member(to)), slot_of[what % size]);
    };
    const auto get = [&](uint32_t from, uint32_t what) {
      if (slot_of[what % size] != UINT32_MAX) value_.take_slot(group_.rank(member(from)), slot_of[what % size]);
    };
    const bool is_ring = dim + size_t{1} < dims_.size();
    // Round a ring: what comes from k - 1 places behind goes ahead, and the other way.
    for (uint32_t k = 1; is_ring && k <= size / 2; ++k) {
      pass(me + 1, me + size - k + 1);
      if (k <= (size - 1) / 2) pass(me + size - 1, me + k - 1);
      get(me + size - 1, me + size - k);
      if (k <= (size - 1) / 2) get(me + 1, me + k);
    }
    for (uint32_t k = 1; !is_ring && k < size; ++k) pass(me + k, me);
    for (uint32_t k = 1; !is_ring && k < size; ++k) get(me + size - k, me + size - k);
    uint32_t sum = 0;
    for (uint32_t at = 0; at < size; ++at) sum += values_[member(at)];
    value_.sum_slots(slots > 1 && completed(sum));
  }
  std::vector<uint32_t> sums(values_.size());
  for (uint32_t m = 0; m < sums.size(); ++m) {
    const Grid line(dims_, m);
    for (uint32_t at = 0; at < size; ++at) sums[m] += values_[line.at(dim, at)];
  }
  values_ = std::move(sums);
}

int LocalSum::roundings(const std::vector<int>& dims) {
  int roundings = dims.back() > 1 ? 1 : 0;
  for (size_t d = 0; d + 1 < dims.size(); ++d) roundings += dims[d] == 4 ? 2 : dims[d] > 1 ? 1 : 0;
  return roundings;
}

}  // namespace ccom
