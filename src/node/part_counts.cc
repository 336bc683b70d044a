// SPDX-License-Identifier: Apache-2.0
#include "node/part_counts.h"

#include <algorithm>

namespace ccom {

static_assert(sizeof(size_t) == sizeof(uint64_t), "lists of counts are shared as they are");

void PartCounts::show(uint32_t barrier, const PartLists& lists) {
  uint64_t* const bank = bank_of(own_, barrier);
  bank[0] = barrier;
  bank[1] = kListed;
  uint64_t* to = bank + 2;
  for (const std::span<const size_t>& list : {lists.sent, lists.received, lists.sent_at}) {
    std::ranges::copy(list, to);
    to += ranks();
  }
}

PartLists PartCounts::of(Rank local_rank, uint32_t barrier) const {
  const uint64_t* const lists = bank_of(local_rank, barrier) + 2;
  return {{lists, ranks()}, {lists + ranks(), ranks()}, {lists + 2 * ranks(), ranks()}};
}

std::vector<uint64_t> PartCounts::claims(uint32_t barrier) const {
  std::vector<uint64_t> all;
  all.reserve(2 * ranks() * ranks());
  for (Rank rank = 0; rank < layout_.ranks; ++rank) {
    const uint64_t* const bank = bank_of(rank, barrier);
    if (bank[0] != barrier) return {};
    if (bank[1] == kListed) {
      all.insert(all.end(), bank + 2, bank + 2 + 2 * ranks());
    } else {
      all.insert(all.end(), 2 * ranks(), bank[1]);
    }
  }
  return all;
}

}  // namespace ccom
