// SPDX-License-Identifier: Apache-2.0
//
// Tensor memory that ranks of the same host can map, so that collectives on it copy least.
#pragma once

#include <ATen/ATen.h>
#include <unistd.h>

namespace ccom_torch {

// Of memory, in bytes: 4 KiB on x86-64; 4, 16 or 64 KiB on arm64.
inline size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// From now on CPU tensors of at least `min_bytes` use such memory, wherever in this process they are created. At most
// `keep_bytes` of freed memory are kept for later tensors. Cannot be undone; calling it again changes the limits.
void enable_mapped_tensors(size_t min_bytes, size_t keep_bytes);
// An empty one-dimensional tensor in such memory, whether enabled or not.
at::Tensor mapped_tensor(int64_t size, const at::TensorOptions& options);
// Whether all of [data, data + bytes) is such memory.
bool is_mapped(const void* data, size_t bytes);

struct MappedMemoryUse {
  size_t in_use = 0, kept = 0;
};
MappedMemoryUse mapped_memory_use();

}  // namespace ccom_torch
