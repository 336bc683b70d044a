// SPDX-License-Identifier: Apache-2.0
#include "memory/reach.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace ccom {

ReachMap::ReachMap(std::vector<LocalPeer> peers, const Arena* arena, Means means)
    : peers_(std::move(peers)), arena_(arena), means_(means) {
  one_process_ = std::ranges::all_of(peers_, &LocalPeer::same_process);
}

Announcement::Where ReachMap::describe(const void* buffer, size_t size_bytes) const {
  if (size_bytes == 0) return {};
  if (one_process_) return {reinterpret_cast<uintptr_t>(buffer), Announcement::AtAddress};
  if (!means_.arenas || arena_ == nullptr) return {};
  const std::optional<size_t> offset = arena_->offset_of(buffer, size_bytes);
  return offset ? Announcement::Where{*offset, Announcement::InArena} : Announcement::Where();
}

Announcement::Where ReachMap::describe_readable(const void* buffer, size_t size_bytes) const {
  const Announcement::Where mapped = describe(buffer, size_bytes);
  if (mapped.is_reached() || !means_.reads || size_bytes == 0) return mapped;
  return {reinterpret_cast<uintptr_t>(buffer), Announcement::Readable};
}

std::byte* ReachMap::resolve(int local_rank, const Announcement::Where& where, size_t size_bytes) const {
  const LocalPeer& peer = peers_[static_cast<size_t>(local_rank)];
  if (where.kind == Announcement::Readable) {
    return means_.reads ? reinterpret_cast<std::byte*>(where.at) : nullptr;  // NOLINT(performance-no-int-to-ptr)
  }
  if (where.kind == Announcement::AtAddress) {
    return peer.same_process ? reinterpret_cast<std::byte*>(where.at) : nullptr;  // NOLINT(performance-no-int-to-ptr)
  }
  const Bytes arena = peer.arena;
  if (where.kind != Announcement::InArena || where.at >= arena.size() || size_bytes > arena.size() - where.at) {
    return nullptr;
  }
  return arena.data() + where.at;
}

Status ReachMap::read(int local_rank, const std::byte* from, std::byte* to, size_t size_bytes) const {
  while (size_bytes > 0) {
    const iovec here{to, size_bytes};
    const iovec there{const_cast<std::byte*>(from), size_bytes};
    const ssize_t moved = ::process_vm_readv(peers_[static_cast<size_t>(local_rank)].pid, &here, 1, &there, 1, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return system_error(errno, "read %zu bytes of another rank's memory", size_bytes);
    const auto done = static_cast<size_t>(moved);
    to += done;
    from += done;
    size_bytes -= done;
  }
  return {};
}

bool can_read(int pid, uint64_t address, uint64_t number) {
  uint64_t seen = 0;
  const iovec here{&seen, sizeof seen};
  const iovec there{reinterpret_cast<void*>(address), sizeof seen};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof seen && seen == number;
}

}  // namespace ccom
