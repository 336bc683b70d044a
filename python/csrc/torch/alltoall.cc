// SPDX-License-Identifier: Apache-2.0
#include "parts.h"
#include "types.h"

namespace ccom_torch {
namespace {

void exchange(const Member& member, const Parts& from, const Parts& to) {
  check(ccomAlltoAllV(from.base, from.counts.data(), from.places.data(), to.base, to.counts.data(), to.places.data(),
                      from.type, member.comm, nullptr),
        member.comm);
}

}  // namespace

void alltoall(const Member& member, const at::Tensor& output, const at::Tensor& input,
              const std::vector<int64_t>& output_splits, const std::vector<int64_t>& input_splits) {
  const at::Tensor from = plain_input(input);
  const Tensors list{output};
  const Outputs outputs(list, {from});
  const at::Tensor& to = outputs.plain().front();
  if (output_splits.empty() && input_splits.empty()) {
    const Elements elements = moved_elements(input.scalar_type());
    const size_t count = static_cast<size_t>(input.numel()) * elements.factor / static_cast<size_t>(member.size);
    check(ccomAlltoAll(from.const_data_ptr(), to.mutable_data_ptr(), count, elements.type, member.comm, nullptr),
          member.comm);
  } else {
    exchange(member, rows_of(from, input_splits, member.size), rows_of(to, output_splits, member.size));
  }
  outputs.finish();
}

void alltoall(const Member& member, const Tensors& outputs, const Tensors& inputs) {
  Tensors from;
  for (const at::Tensor& input : inputs) from.push_back(plain_input(input));
  const Outputs to(outputs, from);
  exchange(member, parts_of(from), parts_of(to.plain()));
  to.finish();
}

}  // namespace ccom_torch
