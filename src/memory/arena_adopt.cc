// SPDX-License-Identifier: Apache-2.0
//
// Ordinary memory made mappable in place.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "memory/arena.h"

namespace ccom {
namespace {

// Whether all of the range is private, anonymous and read-write, from /proc/self/maps: "begin-end perms offset dev
// inode path". The stack and other special mappings carry a name in brackets.
Status check_ordinary(uintptr_t begin, uintptr_t end) {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return error(Code::NotSupported, "/proc/self/maps cannot be read");
  uintptr_t covered = begin;
  for (std::string line; covered < end && std::getline(maps, line);) {
    uintptr_t from = 0;
    uintptr_t to = 0;
    char permissions[8] = "";
    unsigned long inode = 0;
    int path = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %lu %n", &from, &to, permissions, &inode,
                    &path) < 4 ||
        to <= covered) {
      continue;
    }
    if (from > covered) break;
    const std::string name = line.substr(static_cast<size_t>(path));
    const bool is_named = !name.empty() && name != "[heap]" && name.rfind("[anon:", 0) != 0;
    if (std::strcmp(permissions, "rw-p") != 0 || inode != 0 || is_named) {
      return error(Code::NotSupported, "the memory is not private, anonymous and read-write (%s %s)", permissions,
                   name.c_str());
    }
    covered = to;
  }
  return covered >= end ? Status() : error(Code::InvalidArgument, "a part of the buffer is not mapped");
}

}  // namespace

Status Arena::adopt(void* begin, size_t size_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  if (size_bytes == 0 || address % page_ != 0 || size_bytes % page_ != 0) {
    return error(Code::InvalidArgument,
                 "the buffer does not begin and end on a page (of %zu bytes): its pages hold other data too", page_);
  }
  const ExclusiveLock lock(adopted_mutex_);
  const auto next = adopted_.lower_bound(address);
  if (next != adopted_.end() && next->first == address && next->second.size_bytes == size_bytes) {
    ++next->second.times;
    return {};
  }
  const bool meets_next = next != adopted_.end() && next->first < address + size_bytes;
  const bool meets_before =
      next != adopted_.begin() && std::prev(next)->first + std::prev(next)->second.size_bytes > address;
  if (meets_next || meets_before) return error(Code::InvalidArgument, "a part of the buffer is registered already");
  CCOM_TRY(check_ordinary(address, address + size_bytes));
  CCOM_TRY_ASSIGN(void* const pages, allocate(size_bytes));
  std::memcpy(pages, begin, size_bytes);
  const size_t offset = static_cast<size_t>(static_cast<std::byte*>(pages) - segment_->bytes().data());
  if (::mmap(begin, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, segment_->fd(),
             static_cast<off_t>(offset)) == MAP_FAILED) {
    const Status failed = system_error(errno, "map %zu bytes of the arena in place", size_bytes);
    return free(pages).is_ok() ? failed : failed;
  }
  adopted_[address] = {size_bytes, offset, 1};
  has_adopted_.store(true, std::memory_order_release);
  return {};
}

// The old contents are in the arena until the ordinary pages have them.
Status Arena::give_back(void* begin, size_t size_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const ExclusiveLock lock(adopted_mutex_);
  const auto found = adopted_.find(address);
  if (found == adopted_.end() || found->second.size_bytes != size_bytes) {
    return error(Code::InvalidArgument, "the buffer is not registered");
  }
  if (--found->second.times > 0) return {};
  if (found->second.is_detached) {  // its pages are private already
    adopted_.erase(found);
    return {};
  }
  if (::mmap(begin, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    ++found->second.times;
    return system_error(errno, "map %zu ordinary bytes in place", size_bytes);
  }
  std::byte* const pages = segment_->bytes().data() + found->second.offset;
  std::memcpy(begin, pages, size_bytes);
  adopted_.erase(found);
  return free(pages);
}

std::optional<size_t> Arena::offset_of(const void* address, size_t size_bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto base = reinterpret_cast<uintptr_t>(segment_->bytes().data());
  if (at >= base && at - base < segment_->bytes().size()) {
    if (has_detached_.load(std::memory_order_acquire)) {
      const Lock lock(mutex_);
      if (is_detached(at - base, std::max<size_t>(size_bytes, 1))) return std::nullopt;
    }
    return size_bytes <= segment_->bytes().size() - (at - base) ? std::optional(at - base) : std::nullopt;
  }
  if (!has_adopted_.load(std::memory_order_acquire)) return std::nullopt;
  const SharedLock lock(adopted_mutex_);
  const auto found = find(adopted_, at, size_bytes);
  return found == adopted_.end() ? std::nullopt : std::optional(found->second.offset + (at - found->first));
}

Arena::AdoptedRanges::const_iterator Arena::find(const AdoptedRanges& ranges, uintptr_t address, size_t size_bytes) {
  auto found = ranges.upper_bound(address);
  if (found == ranges.begin()) return ranges.end();
  const auto& [begin, range] = *--found;
  const size_t at = address - begin;
  const bool holds_all = at < range.size_bytes && size_bytes <= range.size_bytes - at;
  return holds_all && !range.is_detached ? found : ranges.end();
}

}  // namespace ccom
