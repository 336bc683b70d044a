// SPDX-License-Identifier: Apache-2.0
//
// What a forked child has of its parent's arena: private copies of what was in use, made by the kernel when the child
// writes. Nothing is copied at the fork. (docs/decisions/0004)
#include <sys/mman.h>

#include <algorithm>

#include "memory/arena.h"

namespace ccom {
namespace {

// The pages of the file as they are, until the child writes to them. What cannot be had so may not stay shared either:
// a child that touches it crashes, instead of writing into its parent.
void map_privately(void* at, size_t size_bytes, int fd, size_t offset) {
  constexpr int kFlags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
  if (::mmap(at, size_bytes, PROT_READ | PROT_WRITE, kFlags, fd, static_cast<off_t>(offset)) != MAP_FAILED) return;
  ::mmap(at, size_bytes, PROT_NONE, kFlags | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

void Arena::before_fork() {
  adopted_mutex_.lock_shared();
  mutex_.lock();
}

void Arena::after_fork_in_parent() {
  mutex_.unlock();
  adopted_mutex_.unlock_shared();
}

// Only system calls and reads: other threads may have held any lock of the process at the fork, malloc's too.
void Arena::after_fork_in_child() {
  const Bytes whole = segment_->bytes();
  const size_t used = allocated_.empty() ? 0 : allocated_.rbegin()->first + allocated_.rbegin()->second;
  if (used < whole.size()) {
    ::mmap(whole.data() + used, whole.size() - used, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
           -1, 0);
  }
  size_t done = 0;  // what is detached is private already
  for (const auto& [offset, bytes] : detached_) {
    if (offset >= used) break;
    if (offset > done) map_privately(whole.data() + done, offset - done, segment_->fd(), done);
    done = std::max(done, offset + bytes);
  }
  if (used > done) map_privately(whole.data() + done, used - done, segment_->fd(), done);
  for (const auto& [address, range] : adopted_) {
    if (!range.is_detached)
      map_privately(reinterpret_cast<void*>(address), range.size_bytes, segment_->fd(), range.offset);
  }
  after_fork_in_parent();
}

}  // namespace ccom
