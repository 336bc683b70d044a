// SPDX-License-Identifier: Apache-2.0
//
// Lists of tensors as ccom's v-forms take them: parts of one buffer, wherever they lie.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives.h"

namespace ccom_torch {

// Counts and displacements in ccom's elements. Begins at the part that comes first in memory; what lies between parts
// is not touched.
struct Parts {
  std::byte* base = nullptr;
  ccomDataType_t type = ccomUint8;
  std::vector<size_t> counts{}, places{};
};

// Tensors of one type in plain memory, whose addresses differ by whole elements.
Parts parts_of(const Tensors& plain);
// Rows of the first dimension, `splits` of them for each rank; no splits: equal shares of `size` ranks.
Parts rows_of(const at::Tensor& plain, const std::vector<int64_t>& splits, int size);

// Outputs for parts_of(): the tensors themselves, or temporaries for those that are not in plain memory, lie askew, or
// share memory with an input or one another.
class Outputs {
 public:
  Outputs(const Tensors& outputs, const Tensors& plain_inputs);
  const Tensors& plain() const { return plain_; }
  // Copies from temporaries.
  void finish() const;

 private:
  const Tensors& outputs_;
  Tensors plain_;
};

}  // namespace ccom_torch
