// SPDX-License-Identifier: Apache-2.0
//
// Memory that is taken out of the reach of other processes while one of them may be writing to it: a stopped process
// cannot be asked to give its mapping up, but what it writes when it goes on can be made to land elsewhere.
//
// A private mapping of the same file takes the place of the shared one, and every page of it is written to, without a
// change, so that the kernel copies it. Whatever this process's threads write meanwhile, before or after, is kept.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "memory/arena.h"

namespace ccom {
namespace {

constexpr size_t kLeastPage = 4096;  // of any system

// By a write that changes nothing; where it fails, because another thread has just written, the page is copied too.
void copy_pages(std::byte* begin, size_t size_bytes) {
  for (size_t at = 0; at < size_bytes; at += kLeastPage) {
    const std::atomic_ref<std::byte> first(begin[at]);
    std::byte value = first.load(std::memory_order_relaxed);
    first.compare_exchange_strong(value, value, std::memory_order_relaxed);
  }
}

}  // namespace

Status Arena::detach(void* begin, size_t size_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const Bytes whole = segment_->bytes();
  const auto missing = [&] {
    return error(Code::InvalidArgument, "%zu bytes at %p are not in the arena", size_bytes, begin);
  };
  if (const size_t at = address - reinterpret_cast<uintptr_t>(whole.data()); at < whole.size()) {
    const Lock lock(mutex_);
    if (size_bytes > whole.size() - at || is_detached(at, std::max<size_t>(size_bytes, 1))) return missing();
    const size_t first = at / page_ * page_;
    const size_t last = (at + size_bytes + page_ - 1) / page_ * page_;
    return detach_pages(whole.data() + first, last - first, first);
  }
  const ExclusiveLock lock(adopted_mutex_);
  const auto found = find(adopted_, address, size_bytes);
  if (found == adopted_.end()) return missing();
  Adopted& range = adopted_[found->first];
  const Lock allocation_lock(mutex_);
  CCOM_TRY(detach_pages(reinterpret_cast<std::byte*>(found->first), range.size_bytes, range.offset));
  range.is_detached = true;
  return {};
}

Status Arena::detach_pages(std::byte* begin, size_t size_bytes, size_t offset) {
  const auto entry = detached_.emplace(offset, size_bytes).first;  // first: without memory for it nothing is changed
  if (::mmap(begin, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, segment_->fd(),
             static_cast<off_t>(offset)) == MAP_FAILED) {
    const int reason = errno;
    detached_.erase(entry);
    return system_error(reason, "map %zu bytes privately", size_bytes);
  }
  copy_pages(begin, size_bytes);
  // The copies stay. Not essential: it frees the originals before the buffer is freed.
  (void)::fallocate(segment_->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(size_bytes));
  has_detached_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  return {};
}

bool Arena::is_detached(size_t offset, size_t size_bytes) const {
  return std::ranges::any_of(detached_, [&](const auto& range) {
    return range.first < offset + size_bytes && offset < range.first + range.second;
  });
}

}  // namespace ccom
