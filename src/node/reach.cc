// SPDX-License-Identifier: Apache-2.0
#include "node/reach.h"

#include <algorithm>

namespace ccom {

ReachMap::ReachMap(std::vector<NodeMate> mates, int place, bool uses_arenas)
    : mates_(std::move(mates)), place_(static_cast<size_t>(place)), uses_arenas_(uses_arenas) {
  one_process_ = std::ranges::all_of(mates_, &NodeMate::same_process);
}

Announcement::Where ReachMap::describe(const void* buffer, size_t size_bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(buffer);
  if (size_bytes == 0) return {};
  if (one_process_) return {address, Announcement::kAddress};
  if (!uses_arenas_) return {};
  const Bytes arena = mates_[place_].arena;
  const auto begin = reinterpret_cast<uintptr_t>(arena.data());
  if (address < begin || address - begin >= arena.size() || size_bytes > arena.size() - (address - begin)) return {};
  return {address - begin, Announcement::kArena};
}

std::byte* ReachMap::resolve(int place, const Announcement::Where& where, size_t size_bytes) const {
  const NodeMate& mate = mates_[static_cast<size_t>(place)];
  if (where.kind == Announcement::kAddress) {
    return mate.same_process ? reinterpret_cast<std::byte*>(where.at) : nullptr;  // NOLINT(performance-no-int-to-ptr)
  }
  const Bytes arena = mate.arena;
  if (where.kind != Announcement::kArena || where.at >= arena.size() || size_bytes > arena.size() - where.at) {
    return nullptr;
  }
  return arena.data() + where.at;
}

}  // namespace ccom
