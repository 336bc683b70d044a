// SPDX-License-Identifier: Apache-2.0
//
// Averages of gradients that cross between hosts in fewer bits, for DistributedDataParallel's communication hooks.
#include "issue-inl.h"
#include "mapped_memory.h"

namespace ccom_torch {
namespace {

using c10d::OpType;

void check_dense(const char* operation, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == at::kStrided, "ccom ", operation,
              ": needs dense CPU tensors, got one of layout ", tensor.layout(), " on ", tensor.device());
}

bool crosses_hosts(ccomComm_t comm) {
  ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
  return ccomCommGetInfo(comm, &info) == ccomSuccess && info.nhosts > 1;
}

// The tensor is rounded while it is copied to where the average is formed, in memory that other ranks of the host can
// map, and widened while the average is copied back.
void average_rounded(const Member& member, const at::Tensor& tensor) {
  const at::TensorOptions options = tensor.options().dtype(at::kBFloat16).requires_grad(false);
  const at::Tensor rounded = mapped_tensor(tensor.numel(), options).view(tensor.sizes());
  rounded.copy_(tensor);
  allreduce(member, rounded, c10d::ReduceOp::AVG);
  tensor.copy_(rounded);
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::average_with_residual(const at::Tensor& tensor, const at::Tensor& residual) {
  check_dense("average_with_residual", tensor);
  check_dense("average_with_residual", residual);
  const bool fits = residual.scalar_type() == at::kFloat && residual.is_contiguous() &&
                    residual.numel() == tensor.numel() && !tensor.is_complex();
  TORCH_CHECK(fits,
              "ccom average_with_residual: the residual must be contiguous float32, with an element for each "
              "real one");
  const Tensors tensors{tensor};
  return issue({OpType::ALLREDUCE, "ccom:all_reduce", "allreduce", "allreduce", tensors, tensors, options_->timeout,
                true, tensor.nbytes(), tensor.nbytes()},
               [tensor, residual](const Member& member) {
                 ccom_torch::allreduce_residual(member, tensor, residual, c10d::ReduceOp::AVG);
               });
}

ProcessGroup::WorkPtr ProcessGroup::average_as_bfloat16(const at::Tensor& tensor) {
  check_dense("average_as_bfloat16", tensor);
  const Tensors tensors{tensor};
  return issue({OpType::ALLREDUCE, "ccom:all_reduce", "allreduce", "allreduce", tensors, tensors, options_->timeout,
                true, tensor.nbytes(), tensor.nbytes()},
               [this, tensor](const Member& member) {
                 if (tensor.scalar_type() == at::kFloat && crosses_hosts(member.comm))
                   return average_rounded(member, tensor);
                 buckets_.allreduce(member, tensor, c10d::ReduceOp::AVG);
               });
}

}  // namespace ccom_torch
