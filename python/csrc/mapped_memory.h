// SPDX-License-Identifier: Apache-2.0
//
// Memory of tensors that ranks on the same host can map, so that collectives on it copy least.
#pragma once

#include <ATen/ATen.h>

namespace ccom_torch {

// From now on CPU tensors of `min_bytes` and more get such memory, wherever in this process they are made. Freed memory
// is kept for tensors to come, `keep_bytes` of it at most. Cannot be undone; calling it again changes the limits.
void enable_mapped_tensors(size_t min_bytes, size_t keep_bytes);
// An empty, one-dimensional tensor in such memory, whether enabled or not.
at::Tensor mapped_tensor(int64_t size, const at::TensorOptions& options);
// The whole of [data, data + bytes) is such memory.
bool is_mapped(const void* data, size_t bytes);

struct MappedMemoryUse {
  size_t in_use = 0, kept = 0;
};
MappedMemoryUse mapped_memory_use();

}  // namespace ccom_torch
