// SPDX-License-Identifier: Apache-2.0
//
// Blocking collectives on tensors, in the caller's thread. Tensors may have any strides; contiguous ones are used in
// place, others through a contiguous copy. Throw on error.
#pragma once

#include <ATen/ATen.h>
#include <ccom/ccom.h>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace ccom_torch {

using Tensors = std::vector<at::Tensor>;

// `comm` and this rank's index in it.
struct Member {
  ccomComm_t comm;
  int rank;
  int size;
};

void allreduce(const Member& member, const at::Tensor& tensor, const c10d::ReduceOp& op);
// With what this rank's encodings lose, in a contiguous float32 tensor: ccomAllReduceResidual.
void allreduce_residual(const Member& member, const at::Tensor& tensor, const at::Tensor& residual,
                        const c10d::ReduceOp& op);
// Small tensors of one type are packed together.
void allreduce(const Member& member, const Tensors& tensors, const c10d::ReduceOp& op);
// COO tensors; sum only. Every rank ends with the same indices and values.
void allreduce_sparse(const Member& member, const at::Tensor& tensor);
void broadcast(const Member& member, const at::Tensor& tensor, int root);
void reduce(const Member& member, const at::Tensor& tensor, const c10d::ReduceOp& op, int root);
// output has the size of `size` inputs.
void allgather(const Member& member, const at::Tensor& output, const at::Tensor& input);
// One output per rank; their sizes may differ if all ranks know them.
void allgather(const Member& member, const Tensors& outputs, const at::Tensor& input);
// Outputs are used on root only.
void gather(const Member& member, const Tensors& outputs, const at::Tensor& input, int root);
// Inputs are used on root only.
void scatter(const Member& member, const at::Tensor& output, const Tensors& inputs, int root);
void reduce_scatter(const Member& member, const at::Tensor& output, const at::Tensor& input, const c10d::ReduceOp& op);
void reduce_scatter(const Member& member, const at::Tensor& output, const Tensors& inputs, const c10d::ReduceOp& op);
// Rows of the first dimension: the splits are the numbers of rows sent to, and received from, each rank. Empty: equal
// shares. Either all ranks have splits, of either kind, or none has.
void alltoall(const Member& member, const at::Tensor& output, const at::Tensor& input,
              const std::vector<int64_t>& output_splits, const std::vector<int64_t>& input_splits);
void alltoall(const Member& member, const Tensors& outputs, const Tensors& inputs);
void barrier(const Member& member);

// Whether a dense tensor shares memory with [begin, begin + bytes).
bool overlap(const at::Tensor& plain, const void* begin, size_t bytes);
// Whether a tensor can be used in place: contiguous, no lazy conjugate or negative bit.
bool is_plain(const at::Tensor& tensor);
// The same values in contiguous memory: the tensor itself, or a copy.
at::Tensor plain_input(const at::Tensor& tensor);

}  // namespace ccom_torch
