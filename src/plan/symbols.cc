// SPDX-License-Identifier: Apache-2.0
#include "plan/symbols.h"

#include <algorithm>

namespace ccom {

void SymbolicMemory::load(Buffer buffer, uint32_t first, uint32_t count, SymbolicBlocks& blocks) const {
  blocks.clear();
  uint32_t offset = 0;
  cells_.for_each_run(buffer, first, count, [&](uint32_t cell, uint32_t length) {
    for (auto entry = entries_.lower_bound(cell); entry != entries_.end() && entry->first - cell < length; ++entry) {
      blocks.push_back({offset + (entry->first - cell), entry->second});
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
  auto end = entries_.lower_bound(cell);
  while (end != entries_.end() && end->first - cell < count) end = entries_.erase(end);
  for (const Placed& placed : blocks) entries_.emplace_hint(end, cell + (placed.offset - offset), placed.value);
}

}  // namespace ccom
