// SPDX-License-Identifier: Apache-2.0
#include "comm/memory.h"

#include <map>
#include <mutex>

#include "base/shared_segment.h"

namespace ccom {
namespace {

// Process-wide because allocation is: a buffer belongs to no communicator.
struct Registry {
  std::mutex mutex;
  std::map<void*, std::unique_ptr<SharedSegment>> segments;  // guarded by mutex
};
Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

Result<void*> allocate_shareable(size_t bytes) {
  const size_t size = bytes == 0 ? 1 : bytes;
  CCOM_TRY_ASSIGN(std::unique_ptr<SharedSegment> segment, SharedSegment::create(size, size));
  void* pointer = segment->bytes().data();
  const std::lock_guard lock(registry().mutex);
  registry().segments.emplace(pointer, std::move(segment));
  return pointer;
}

Status free_shareable(void* pointer) {
  if (pointer == nullptr) return {};
  const std::lock_guard lock(registry().mutex);
  if (registry().segments.erase(pointer) == 0) {
    return error(Code::InvalidArgument, "pointer %p was not allocated by ccomMemAlloc, or is freed already", pointer);
  }
  return {};
}

}  // namespace ccom
