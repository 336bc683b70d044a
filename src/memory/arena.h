// SPDX-License-Identifier: Apache-2.0
//
// The memory of this process that processes of the same node may map: one sparse, sealed memfd, handed over once.
//
// Everything that is ever allocated from it is then within reach of all who have it, without another descriptor or
// message. It takes address space at once and memory only for what is allocated.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/page.h"
#include "base/status.h"
#include "memory/shared_segment.h"

namespace ccom {

// Thread-safe. Memory that is shared is not copied by fork(): see before_fork().
//
// Order of mutexes: the registry of process_memory.cc, adopted_mutex_, mutex_; malloc's are the last. Callers hold none
// of their own that a fork handler of theirs takes too: handlers run in the order in which libraries registered them.
class Arena {
 public:
  // page: what is allocated and adopted is of whole ones; a multiple of the system's, larger in tests.
  static Result<std::unique_ptr<Arena>> create(size_t size_bytes, size_t page = page_bytes());

  // Zeroed, page-aligned; OutOfMemory says what is missing. Only the first `reserve_bytes` take memory now; the rest on
  // segment().reserve().
  Result<void*> allocate(size_t size_bytes, size_t reserve_bytes) CCOM_EXCLUDES(mutex_);
  Result<void*> allocate(size_t size_bytes) { return allocate(size_bytes, size_bytes); }
  // Gives the memory back to the system at once. InvalidArgument if allocate() did not return it.
  Status free(void* pointer) CCOM_EXCLUDES(mutex_);

  // Puts pages of the arena in the place of ordinary ones, contents and addresses kept, so that what lies there can be
  // mapped by others too. `begin` and size_bytes are whole pages of private anonymous memory, read-write; else
  // InvalidArgument or NotSupported says what they are. Nobody may write there meanwhile, nor unmap it as long as it
  // stays (docs/decisions/0004). Adopting the same range again is counted.
  Status adopt(void* begin, size_t size_bytes);
  // Ordinary pages again, contents kept. InvalidArgument if it is not adopted.
  Status give_back(void* begin, size_t size_bytes);

  // The pages that [begin, begin + size_bytes) touches become this process's own, contents kept; of adopted memory all
  // that was adopted with them. What another process still writes through its mapping of the arena is then not seen
  // here, now or when that part of the arena is used again, because it never is. Other threads may write to the pages
  // meanwhile. InvalidArgument if they are not in the arena.
  Status detach(void* begin, size_t size_bytes);

  // Where [address, address + size_bytes) lies in the arena, allocated or adopted as one; nothing if it does not, or
  // not any more.
  std::optional<size_t> offset_of(const void* address, size_t size_bytes) const;

  // Another number whenever memory was given back since: what is remembered about the pages behind an address is then
  // to be forgotten.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Around every fork() of the process, by the thread that forks (pthread_atfork): nothing changes in between, and the
  // child gets private copies of what is in use, at the same addresses; also of what was adopted. Pages that it has not
  // written to follow the parent's writes; they are zeros once the parent has freed them. The child, and its own
  // children, may do nothing else with the arena. The child's part is async-signal-safe.
  void before_fork() CCOM_NO_THREAD_SAFETY_ANALYSIS;
  void after_fork_in_parent() CCOM_NO_THREAD_SAFETY_ANALYSIS;
  void after_fork_in_child() CCOM_NO_THREAD_SAFETY_ANALYSIS;

  SharedSegment& segment() { return *segment_; }
  size_t size_bytes() const { return segment_->bytes().size(); }

 private:
  struct Adopted {
    size_t size_bytes = 0;
    size_t offset = 0;  // in the arena
    int times = 0;
    bool is_detached = false;
  };
  using AdoptedRanges = std::map<uintptr_t, Adopted>;  // by address, disjoint
  Arena(std::unique_ptr<SharedSegment> segment, size_t page);

  // The range within which all of it lies, unless that is detached; else the end.
  static AdoptedRanges::const_iterator find(const AdoptedRanges& ranges, uintptr_t address, size_t size_bytes);
  Status give_back(size_t offset, size_t size_bytes);
  Status detach_pages(std::byte* begin, size_t size_bytes, size_t offset) CCOM_REQUIRES(mutex_);
  bool is_detached(size_t offset, size_t size_bytes) const CCOM_REQUIRES(mutex_);

  std::unique_ptr<SharedSegment> segment_;
  const size_t page_;
  std::atomic<uint64_t> generation_{0};
  mutable Mutex mutex_ CCOM_ACQUIRED_AFTER(adopted_mutex_);     // of allocation
  std::map<size_t, size_t> free_ CCOM_GUARDED_BY(mutex_);       // offset -> bytes, never adjacent
  std::map<size_t, size_t> allocated_ CCOM_GUARDED_BY(mutex_);  // offset -> bytes
  std::map<size_t, size_t> detached_ CCOM_GUARDED_BY(mutex_);   // offset -> bytes, may be adjacent
  std::atomic<bool> has_detached_{false};                       // ever
  mutable SharedMutex adopted_mutex_;
  AdoptedRanges adopted_ CCOM_GUARDED_BY(adopted_mutex_);
  std::atomic<bool> has_adopted_{false};  // ever
};

}  // namespace ccom
