// SPDX-License-Identifier: Apache-2.0
#include "parts.h"

#include <algorithm>

#include "types.h"

namespace ccom_torch {
namespace {

std::byte* begin_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(const_cast<void*>(tensor.const_data_ptr()));
}

bool is_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % tensor.itemsize() == 0;
}

bool is_apart(const at::Tensor& tensor, const Tensors& others) {
  return std::none_of(others.begin(), others.end(),
                      [&](const at::Tensor& other) { return overlap(tensor, other.const_data_ptr(), other.nbytes()); });
}

}  // namespace

Parts parts_of(const Tensors& plain) {
  const Elements elements = moved_elements(plain.front().scalar_type());
  const size_t element_bytes = plain.front().itemsize() / elements.factor;
  Parts parts{.type = elements.type};
  for (const at::Tensor& tensor : plain) {
    if (tensor.nbytes() > 0 && (parts.base == nullptr || begin_of(tensor) < parts.base)) parts.base = begin_of(tensor);
  }
  for (const at::Tensor& tensor : plain) {
    parts.counts.push_back(tensor.nbytes() / element_bytes);
    parts.places.push_back(tensor.nbytes() == 0 ? 0
                                                : static_cast<size_t>(begin_of(tensor) - parts.base) / element_bytes);
  }
  return parts;
}

Parts rows_of(const at::Tensor& plain, const std::vector<int64_t>& splits, int size) {
  const Elements elements = moved_elements(plain.scalar_type());
  const size_t count = static_cast<size_t>(plain.numel()) * elements.factor;
  Parts parts{.base = begin_of(plain), .type = elements.type};
  const auto rows = static_cast<size_t>(plain.dim() == 0 ? 1 : plain.size(0));
  size_t next = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(size); ++rank) {
    parts.counts.push_back(splits.empty() ? count / static_cast<size_t>(size)
                           : rows == 0    ? 0
                                          : static_cast<size_t>(splits[rank]) * (count / rows));
    parts.places.push_back(next);
    next += parts.counts.back();
  }
  return parts;
}

Outputs::Outputs(const Tensors& outputs, const Tensors& plain_inputs) : outputs_(outputs) {
  for (const at::Tensor& output : outputs) {
    const bool is_usable =
        is_plain(output) && is_aligned(output) && is_apart(output, plain_inputs) && is_apart(output, plain_);
    plain_.push_back(
        is_usable ? output : at::empty(output.sizes(), output.options().memory_format(at::MemoryFormat::Contiguous)));
  }
}

void Outputs::finish() const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!plain_[i].is_same(outputs_[i])) outputs_[i].copy_(plain_[i]);
  }
}

}  // namespace ccom_torch
