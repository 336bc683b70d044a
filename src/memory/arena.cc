// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace ccom {
namespace {

size_t round_up(size_t bytes, size_t grain) { return (bytes + grain - 1) / grain * grain; }

}  // namespace

Arena::Arena(std::unique_ptr<SharedSegment> segment, size_t page) : segment_(std::move(segment)), page_(page) {
  free_.emplace(0, segment_->bytes().size());
}

Result<std::unique_ptr<Arena>> Arena::create(size_t size_bytes, size_t page) {
  CCOM_TRY_ASSIGN(std::unique_ptr<SharedSegment> segment,
                  SharedSegment::create(round_up(std::max(size_bytes, page), page), 0));
  return std::unique_ptr<Arena>(new Arena(std::move(segment), page));
}

// First fit. Large blocks begin on huge pages, so that those who map them can use them. What takes memory bit by bit
// does not: many such blocks would have all their first lines in one set of each cache.
Result<void*> Arena::allocate(size_t size_bytes, size_t reserve_bytes) {
  if (size_bytes > segment_->bytes().size()) {
    return error(ErrorKey::ArenaFull, "%zu bytes are more than the arena of %zu bytes holds", size_bytes,
                 segment_->bytes().size())
        .with_cure("raise CCOM_ARENA_BYTES");
  }
  const size_t grain = size_bytes >= kHugePageBytes && reserve_bytes >= size_bytes ? kHugePageBytes : page_;
  const size_t size = round_up(std::max<size_t>(size_bytes, 1), page_);
  const Lock lock(mutex_);
  const auto fits = std::ranges::find_if(free_, [&](const auto& hole) {
    const size_t skipped = round_up(hole.first, grain) - hole.first;
    return hole.second >= skipped && hole.second - skipped >= size;
  });
  if (fits == free_.end()) {
    return error(ErrorKey::ArenaFull, "the arena of %zu bytes has no room for %zu", segment_->bytes().size(),
                 size_bytes)
        .with_cure("free memory of ccomMemAlloc, or raise CCOM_ARENA_BYTES");
  }
  const auto [hole, hole_bytes] = *fits;
  const size_t offset = round_up(hole, grain);
  Status reserved = segment_->reserve(offset, std::min(round_up(reserve_bytes, page_), size));
  if (!reserved.is_ok()) {
    (void)give_back(offset, size);  // what it got of it
    return reserved;
  }
  free_.erase(fits);
  if (offset > hole) free_.emplace(hole, offset - hole);
  if (hole + hole_bytes > offset + size) free_.emplace(offset + size, hole + hole_bytes - offset - size);
  allocated_.emplace(offset, size);
  return segment_->bytes().data() + offset;
}

Status Arena::give_back(size_t offset, size_t size_bytes) {
  if (::fallocate(segment_->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size_bytes)) == 0)
    return {};
  return system_error(errno, "give %zu bytes of the arena back", size_bytes);
}

Status Arena::free(void* pointer) {
  const Lock lock(mutex_);
  const auto offset = static_cast<size_t>(static_cast<std::byte*>(pointer) - segment_->bytes().data());
  const auto found = allocated_.find(offset);
  if (found == allocated_.end()) {
    return error(Code::InvalidArgument, "pointer %p was not allocated by ccomMemAlloc, or is freed already", pointer);
  }
  size_t begin = offset;
  size_t size = found->second;
  allocated_.erase(found);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  CCOM_TRY(give_back(begin, size));
  if (is_detached(begin, size)) {  // never used again; the private pages go
    ::madvise(pointer, size, MADV_DONTNEED);
    return {};
  }
  const auto after = free_.find(begin + size);
  if (after != free_.end()) {
    size += after->second;
    free_.erase(after);
  }
  auto before = free_.lower_bound(begin);
  if (before != free_.begin() && (--before)->first + before->second == begin) {
    before->second += size;
  } else {
    free_.emplace(begin, size);
  }
  return {};
}

}  // namespace ccom
