// SPDX-License-Identifier: Apache-2.0
//
// The memory of one rank for one size, with guards on both sides to detect stray writes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "bench/cases.h"
#include "bench/launch/outcome.h"
#include "bench/options.h"

namespace ccom::bench {

struct Release {
  Memory memory = Memory::Heap;
  void operator()(void* pointer) const;
};

// A span of bytes with guard bytes before and after. `data` is page-aligned plus `unalign`.
class Area {
 public:
  Area() = default;
  launch::Outcome allocate(size_t size_bytes, size_t unalign, Memory memory);

  std::byte* data() const { return data_; }
  // All of it, guards included: whole pages, for ccomCommRegister.
  std::span<std::byte> pages() const { return {static_cast<std::byte*>(owned_.get()), total_bytes_}; }
  void write_guards() const;
  // Modified guard bytes.
  size_t damaged_guards() const;

 private:
  std::unique_ptr<void, Release> owned_;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t total_bytes_ = 0;
};

// Enough for every root and both placements of a collective, type and count, once for each call of a group.
class Buffers {
 public:
  // Bytes that a rank uses.
  static size_t bytes_needed(const Case& what, int group);

  launch::Outcome allocate(const Case& what, const Options& options);
  bool fits(const Case& what) const;
  void release();

  const Area& send_area() const { return send_; }
  const Area& recv_area() const { return recv_; }
  // Start of the receive buffer; in place the send buffer is in the same area.
  std::byte* recv(const Case& what, int rank, int member) const;
  std::byte* send(const Case& what, int rank, int member) const;

 private:
  Case allocated_for_{};
  size_t send_stride_ = 0;
  size_t recv_stride_ = 0;
  bool valid_ = false;
  Area send_;
  Area recv_;
};

// Available memory of this machine in bytes: MemAvailable. SIZE_MAX if unknown.
size_t available_memory();

}  // namespace ccom::bench
