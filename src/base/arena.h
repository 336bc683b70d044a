// SPDX-License-Identifier: Apache-2.0
//
// The memory of this process that processes of the same node may map: one sparse, sealed memfd, handed over once.
//
// Everything that is ever allocated from it is then within reach of all who have it, without another descriptor or
// message. It takes address space at once and memory only for what is allocated.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "base/shared_segment.h"
#include "base/status.h"

namespace ccom {

// Thread-safe. A forked child does not inherit the memory: it would not be copied but shared.
class Arena {
 public:
  static Result<std::unique_ptr<Arena>> create(size_t size_bytes);

  // Zeroed, page-aligned; OutOfMemory says what is missing.
  Result<void*> allocate(size_t size_bytes);
  // Gives the memory back to the system at once. InvalidArgument if allocate() did not return it.
  Status free(void* pointer);

  SharedSegment& segment() { return *segment_; }

 private:
  explicit Arena(std::unique_ptr<SharedSegment> segment);

  std::unique_ptr<SharedSegment> segment_;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;       // offset -> bytes, never adjacent; guarded by mutex_, as below
  std::map<size_t, size_t> allocated_;  // offset -> bytes
};

}  // namespace ccom
