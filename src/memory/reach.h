// SPDX-License-Identifier: Apache-2.0
//
// How a rank gets at the buffers of the other ranks of its host: because they are threads of one process, because the
// buffers lie in an arena (memory/arena.h) that every rank of the host has mapped, or, only to read, through the kernel
// (process_vm_readv).
#pragma once

#include <array>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "memory/arena.h"

namespace ccom {

// Where a call's buffers are, in words that mean the same to all ranks. Travels in a flag line.
struct Announcement {
  enum Kind : uint32_t { Nowhere = 0, AtAddress = 1, InArena = 2, Readable = 3 };
  struct Where {
    uint64_t at = 0;  // an address, or an offset in the rank's arena
    uint32_t kind = Nowhere;
    uint32_t unused = 0;
    bool is_mapped() const { return kind == AtAddress || kind == InArena; }
    bool is_reached() const { return kind != Nowhere; }
  };
  Where input, output;
};

// What one rank's process looks like from here.
struct LocalPeer {
  bool same_process = false;
  Bytes arena;  // as mapped here; empty: not at all
  int pid = 0;
};

// A value.
class ReachMap {
 public:
  struct Means {
    bool arenas = false;  // every rank of the host has mapped those of all others
    bool reads = false;   // every rank of the host may read the memory of all others
  };
  // peers: by local rank. arena: this process's, may be null; outlives the map.
  ReachMap(std::vector<LocalPeer> peers, const Arena* arena, Means means);

  // For a buffer of this rank.
  Announcement::Where describe(const void* buffer, size_t size_bytes) const;
  // For one that others only read, and that is worth a system call.
  Announcement::Where describe_readable(const void* buffer, size_t size_bytes) const;
  // Where size_bytes that a rank described lie here; for Readable there, to be passed to read(). Null if that is
  // impossible.
  std::byte* resolve(int local_rank, const Announcement::Where& where, size_t size_bytes) const;
  Status read(int local_rank, const std::byte* from, std::byte* to, size_t size_bytes) const;

 private:
  std::vector<LocalPeer> peers_;
  const Arena* arena_;
  bool one_process_ = true;
  Means means_;
};

// Whether this process may read that one's memory, where `number` is known to be.
bool can_read(int pid, uint64_t address, uint64_t number);

}  // namespace ccom
