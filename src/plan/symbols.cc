// SPDX-License-Identifier: Apache-2.0
#include "plan/symbols.h"

#include <algorithm>

namespace ccom {

void SymbolicMemory::load(Buffer buffer, uint32_t first, uint32_t count, SymbolicBlocks& blocks) const {
  blocks.clear();
  uint32_t offset = 0;
  cells_.for_each_run(buffer, first, count, [&](uint32_t cell, uint32_t length) {
    auto entry = std::ranges::lower_bound(entries_, cell, {}, &Entry::cell);
    for (; entry != entries_.end() && entry->cell - cell < length; ++entry) {
      blocks.push_back({offset + (entry->cell - cell), entry->value});
    }
    offset += length;
  });
}

void SymbolicMemory::store(Buffer buffer, uint32_t first, uint32_t count, std::span<const Placed> blocks) {
  uint32_t offset = 0;
  cells_.for_each_run(buffer, first, count, [&](uint32_t cell, uint32_t length) {
    const auto begin = std::ranges::lower_bound(blocks, offset, {}, &Placed::offset);
    const auto end = std::ranges::lower_bound(blocks, offset + length, {}, &Placed::offset);
    replace(cell, length, offset, {begin, end});
    offset += length;
  });
}

void SymbolicMemory::replace(uint32_t cell, uint32_t count, uint32_t offset, std::span<const Placed> blocks) {
  auto begin = std::ranges::lower_bound(entries_, cell, {}, &Entry::cell);
  auto end = begin;
  while (end != entries_.end() && end->cell - cell < count) ++end;
  const auto known = static_cast<size_t>(end - begin);
  if (known < blocks.size()) {
    begin = entries_.insert(begin, blocks.size() - known, Entry{});
  } else {
    begin = entries_.erase(end - static_cast<std::ptrdiff_t>(known - blocks.size()), end) -
            static_cast<std::ptrdiff_t>(blocks.size());
  }
  for (const Placed& placed : blocks) *begin++ = {cell + (placed.offset - offset), placed.value};
}

}  // namespace ccom
