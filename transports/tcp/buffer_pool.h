// SPDX-License-Identifier: Apache-2.0
//
// Buffers in which a fragment for a Sink is assembled and verified before it is passed on. Last in, first out, because
// the most recent buffer is still in the cache; at most one per fragment in flight.
#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "transports/tcp/wire.h"

namespace ccom::tcp {

class BufferPool {
 public:
  struct Free {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  using Buffer = std::unique_ptr<std::byte, Free>;  // of `buffer_bytes`

  explicit BufferPool(size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  // Null if out of memory.
  Buffer take() {
    if (!spare_.empty()) {
      Buffer buffer = std::move(spare_.back());
      spare_.pop_back();
      return buffer;
    }
    Buffer buffer(static_cast<std::byte*>(::operator new(buffer_bytes_, kAlignment, std::nothrow)));
    if (buffer != nullptr) ++made_;
    return buffer;
  }
  void give_back(Buffer buffer) { spare_.push_back(std::move(buffer)); }
  uint64_t memory_bytes() const { return made_ * buffer_bytes_; }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  const size_t buffer_bytes_;
  uint64_t made_ = 0;
  std::vector<Buffer> spare_;
};

}  // namespace ccom::tcp
