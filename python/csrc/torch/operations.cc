// SPDX-License-Identifier: Apache-2.0
//
// torch's collectives: arguments are checked at issue, with torch's own error texts where it has them.
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "issue-inl.h"
#include "types.h"

namespace ccom_torch {
namespace {

using c10d::OpType;

[[noreturn]] void invalid(const char* operation, const std::string& what) {
  TORCH_CHECK(false, "ccom ", operation, ": ", what);
}

void check_tensor(const char* operation, const at::Tensor& tensor) {
  if (tensor.device().is_cpu() && tensor.layout() == at::kStrided) return;
  invalid(operation,
          "needs dense CPU tensors, got one of layout " + c10::str(tensor.layout()) + " on " + tensor.device().str());
}

void check_tensors(const char* operation, const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) check_tensor(operation, tensor);
}

at::Tensor& only(const char* operation, const char* which, Tensors& tensors) {
  if (tensors.size() != 1)
    invalid(operation,
            std::string("requires a single-element ") + which + " list, got " + std::to_string(tensors.size()));
  check_tensor(operation, tensors.front());
  return tensors.front();
}

void check_same_type(const char* operation, const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() == b.scalar_type()) return;
  invalid(operation, std::string("invalid tensor type: ") + c10::toString(a.scalar_type()) + " and " +
                         c10::toString(b.scalar_type()) + " in one call");
}

void check_root(const char* operation, int64_t root, int size) {
  if (root < 0 || root >= size)
    invalid(operation, "invalid root rank: " + std::to_string(root) + " in a group of " + std::to_string(size));
}

void check_ratio(const char* operation, const at::Tensor& whole, const at::Tensor& part, int size) {
  check_tensor(operation, whole);
  check_tensor(operation, part);
  check_same_type(operation, whole, part);
  if (whole.numel() == part.numel() * size) return;
  invalid(operation,
          "invalid tensor size: the larger tensor must have world size times as many elements as the smaller: " +
              std::to_string(whole.numel()) + " is not " + std::to_string(size) + " x " + std::to_string(part.numel()));
}

// One tensor per rank, of the type of `other`.
void check_list(const char* operation, const Tensors& list, const at::Tensor& other, int size) {
  if (list.size() != static_cast<size_t>(size))
    invalid(operation, "needs a list of " + std::to_string(size) + " tensors, one for each rank, got " +
                           std::to_string(list.size()));
  for (const at::Tensor& tensor : list) {
    check_tensor(operation, tensor);
    check_same_type(operation, tensor, other);
  }
}

Tensors& list_of(const char* operation, std::vector<Tensors>& lists) {
  if (lists.size() != 1)
    invalid(operation, "requires a single-element list of lists, got " + std::to_string(lists.size()));
  return lists.front();
}

void check_slot(const char* operation, const at::Tensor& slot, const at::Tensor& mine) {
  if (slot.numel() == mine.numel()) return;
  invalid(operation, "invalid tensor size: this rank's place in the list has " + std::to_string(slot.numel()) +
                         " elements, its tensor " + std::to_string(mine.numel()));
}

size_t bytes_of(const Tensors& tensors) {
  size_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += tensor.nbytes();
  return sum;
}

// Synchronous or not: a field that torch 2.8 gave to all options.
template <typename Options>
bool is_async(const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return options.asyncOp;
  } else {
    return true;
  }
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::allreduce(Tensors& tensors, const AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors.front().is_sparse()) {
    TORCH_CHECK(options.reduceOp == c10d::ReduceOp::SUM, "ccom allreduce: sparse tensors can only be summed");
    return issue({OpType::ALLREDUCE, "ccom:all_reduce", "allreduce", nullptr, tensors, tensors, options.timeout,
                  is_async(options), 0, 0},
                 [tensor = tensors.front()](const Member& member) { ccom_torch::allreduce_sparse(member, tensor); });
  }
  const at::Tensor& tensor = only("allreduce", "tensor", tensors);
  return issue({OpType::ALLREDUCE, "ccom:all_reduce", "allreduce", "allreduce", tensors, tensors, options.timeout,
                is_async(options), tensor.nbytes(), tensor.nbytes()},
               [this, tensor, op = options.reduceOp](const Member& member) { buckets_.allreduce(member, tensor, op); });
}

void ProcessGroup::witness(const Tensors& tensors) {
  check_tensors("witness", tensors);
  Tensors plain;
  std::vector<std::pair<const void*, size_t>> data;
  for (const at::Tensor& tensor : tensors) {
    plain.push_back(plain_input(tensor));
    data.emplace_back(plain.back().const_data_ptr(), plain.back().nbytes());
  }
  communicator().witness(data);
}

ProcessGroup::WorkPtr ProcessGroup::allreduce_coalesced(Tensors& tensors, const AllreduceCoalescedOptions& options) {
  check_tensors("allreduce_coalesced", tensors);
  const size_t bytes = bytes_of(tensors);
  return issue({OpType::ALLREDUCE_COALESCED, "ccom:all_reduce", "allreduce_coalesced", nullptr, tensors, tensors,
                options.timeout, is_async(options), bytes, bytes},
               [tensors, op = options.reduceOp](const Member& member) { ccom_torch::allreduce(member, tensors, op); });
}

ProcessGroup::WorkPtr ProcessGroup::broadcast(Tensors& tensors, const BroadcastOptions& options) {
  const at::Tensor& tensor = only("broadcast", "tensor", tensors);
  check_root("broadcast", options.rootRank, size_);
  return issue({OpType::BROADCAST, "ccom:broadcast", "broadcast", "broadcast", tensors, tensors, options.timeout,
                is_async(options), tensor.nbytes(), tensor.nbytes()},
               [tensor, root = static_cast<int>(options.rootRank)](const Member& member) {
                 ccom_torch::broadcast(member, tensor, root);
               });
}

ProcessGroup::WorkPtr ProcessGroup::reduce(Tensors& tensors, const ReduceOptions& options) {
  const at::Tensor& tensor = only("reduce", "tensor", tensors);
  check_root("reduce", options.rootRank, size_);
  return issue({OpType::REDUCE, "ccom:reduce", "reduce", "reduce", tensors, tensors, options.timeout, is_async(options),
                tensor.nbytes(), tensor.nbytes()},
               [tensor, op = options.reduceOp, root = static_cast<int>(options.rootRank)](const Member& member) {
                 ccom_torch::reduce(member, tensor, op, root);
               });
}

ProcessGroup::WorkPtr ProcessGroup::allgather(TensorLists& outputs, Tensors& inputs, const AllgatherOptions& options) {
  const at::Tensor& input = only("allgather", "input tensor", inputs);
  const Tensors& list = list_of("allgather", outputs);
  check_list("allgather", list, input, size_);
  check_slot("allgather", list[static_cast<size_t>(rank_)], input);
  return issue({OpType::ALLGATHER, "ccom:all_gather", "all_gather", "allgather", inputs, list, options.timeout,
                is_async(options), bytes_of(list), input.nbytes()},
               [list, input](const Member& member) { ccom_torch::allgather(member, list, input); });
}

ProcessGroup::WorkPtr ProcessGroup::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                    const AllgatherOptions& options) {
  check_ratio("allgather", output, input, size_);
  return issue({OpType::_ALLGATHER_BASE,
                "ccom:all_gather",
                "_allgather_base",
                "allgather",
                {input},
                {output},
                options.timeout,
                is_async(options),
                output.nbytes(),
                input.nbytes()},
               [output, input](const Member& member) { ccom_torch::allgather(member, output, input); });
}

ProcessGroup::WorkPtr ProcessGroup::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                    const AllgatherOptions& options) {
  if (outputs.size() != inputs.size()) invalid("allgather_coalesced", "needs as many outputs as inputs");
  for (size_t i = 0; i < inputs.size(); ++i) check_ratio("allgather_coalesced", outputs[i], inputs[i], size_);
  return issue({OpType::ALLGATHER_COALESCED, "ccom:all_gather", "allgather_into_tensor_coalesced", nullptr, inputs,
                outputs, options.timeout, is_async(options), bytes_of(outputs), 0},
               [outputs, inputs](const Member& member) {
                 for (size_t i = 0; i < inputs.size(); ++i) ccom_torch::allgather(member, outputs[i], inputs[i]);
               });
}

ProcessGroup::WorkPtr ProcessGroup::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                        const AllgatherOptions& options) {
  // outputs[rank][tensor]; ccom gathers tensor by tensor.
  if (outputs.size() != static_cast<size_t>(size_))
    invalid("allgather_coalesced", "needs a list of outputs for each rank");
  TensorLists by_tensor(inputs.size());
  Tensors all;
  for (const Tensors& of_rank : outputs) {
    if (of_rank.size() != inputs.size()) invalid("allgather_coalesced", "needs as many outputs as inputs");
    for (size_t i = 0; i < inputs.size(); ++i) by_tensor[i].push_back(of_rank[i]);
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  for (size_t i = 0; i < inputs.size(); ++i) check_list("allgather_coalesced", by_tensor[i], inputs[i], size_);
  return issue({OpType::ALLGATHER_COALESCED, "ccom:all_gather", "allgather_coalesced", nullptr, inputs, all,
                options.timeout, is_async(options), bytes_of(all), 0},
               [by_tensor, inputs](const Member& member) {
                 for (size_t i = 0; i < inputs.size(); ++i) ccom_torch::allgather(member, by_tensor[i], inputs[i]);
               });
}

ProcessGroup::WorkPtr ProcessGroup::gather(TensorLists& outputs, Tensors& inputs, const GatherOptions& options) {
  const at::Tensor& input = only("gather", "input tensor", inputs);
  check_root("gather", options.rootRank, size_);
  const bool is_root = rank_ == options.rootRank;
  if (!is_root && !outputs.empty() && !outputs.front().empty()) invalid("gather", "requires empty output on non-root");
  const Tensors list = is_root ? list_of("gather", outputs) : Tensors();
  if (is_root) {
    check_list("gather", list, input, size_);
    for (const at::Tensor& tensor : list) check_slot("gather", tensor, input);
  }
  return issue({OpType::GATHER, "ccom:gather", "gather", "gather", inputs, list, options.timeout, is_async(options),
                input.nbytes() * static_cast<size_t>(size_), input.nbytes()},
               [list, input, root = static_cast<int>(options.rootRank)](const Member& member) {
                 ccom_torch::gather(member, list, input, root);
               });
}

ProcessGroup::WorkPtr ProcessGroup::gather_single(at::Tensor& output, at::Tensor& input, const GatherOptions& options) {
  TensorLists outputs;
  Tensors inputs{input};
  if (rank_ == options.rootRank) {
    check_ratio("gather", output, input, size_);
    // Each part in the shape of the input; views, so that parts are written where they lie.
    if (!output.is_contiguous()) invalid("gather", "needs a contiguous output tensor");
    outputs.emplace_back();
    for (const at::Tensor& part : output.view({size_, -1}).unbind(0)) outputs.front().push_back(part.view_as(input));
  }
  return gather(outputs, inputs, options);
}

ProcessGroup::WorkPtr ProcessGroup::scatter(Tensors& outputs, TensorLists& inputs, const ScatterOptions& options) {
  const at::Tensor& output = only("scatter", "output tensor", outputs);
  check_root("scatter", options.rootRank, size_);
  const bool is_root = rank_ == options.rootRank;
  if (!is_root && !inputs.empty() && !inputs.front().empty()) invalid("scatter", "requires empty input on non-root");
  const Tensors list = is_root ? list_of("scatter", inputs) : Tensors();
  if (is_root) {
    check_list("scatter", list, output, size_);
    for (const at::Tensor& tensor : list) check_slot("scatter", tensor, output);
  }
  return issue({OpType::SCATTER, "ccom:scatter", "scatter", "scatter", list, outputs, options.timeout,
                is_async(options), output.nbytes() * static_cast<size_t>(size_), output.nbytes()},
               [list, output, root = static_cast<int>(options.rootRank)](const Member& member) {
                 ccom_torch::scatter(member, output, list, root);
               });
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                   const ReduceScatterOptions& options) {
  const at::Tensor& output = only("reduce_scatter", "output tensor", outputs);
  const Tensors& list = list_of("reduce_scatter", inputs);
  check_list("reduce_scatter", list, output, size_);
  check_slot("reduce_scatter", list[static_cast<size_t>(rank_)], output);
  return issue({OpType::REDUCE_SCATTER, "ccom:reduce_scatter", "reduce_scatter", "reduce_scatter", list, outputs,
                options.timeout, is_async(options), bytes_of(list), output.nbytes()},
               [list, output, op = options.reduceOp](const Member& member) {
                 ccom_torch::reduce_scatter(member, output, list, op);
               });
}

ProcessGroup::WorkPtr ProcessGroup::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                         const ReduceScatterOptions& options) {
  check_ratio("reduce_scatter", input, output, size_);
  return issue({OpType::_REDUCE_SCATTER_BASE,
                "ccom:reduce_scatter",
                "_reduce_scatter_base",
                "reduce_scatter",
                {input},
                {output},
                options.timeout,
                is_async(options),
                input.nbytes(),
                output.nbytes()},
               [output, input, op = options.reduceOp](const Member& member) {
                 ccom_torch::reduce_scatter(member, output, input, op);
               });
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                                    const ReduceScatterOptions& options) {
  if (outputs.size() != inputs.size()) invalid("reduce_scatter_coalesced", "needs as many outputs as inputs");
  for (size_t i = 0; i < inputs.size(); ++i) check_ratio("reduce_scatter_coalesced", inputs[i], outputs[i], size_);
  return issue({reduce_scatter_coalesced(), "ccom:reduce_scatter", "reduce_scatter_tensor_coalesced", nullptr, inputs,
                outputs, options.timeout, is_async(options), bytes_of(inputs), 0},
               [outputs, inputs, op = options.reduceOp](const Member& member) {
                 for (size_t i = 0; i < inputs.size(); ++i)
                   ccom_torch::reduce_scatter(member, outputs[i], inputs[i], op);
               });
}

ProcessGroup::WorkPtr ProcessGroup::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                  std::vector<int64_t>& output_splits,
                                                  std::vector<int64_t>& input_splits, const AllToAllOptions& options) {
  check_tensor("alltoall", output);
  check_tensor("alltoall", input);
  check_same_type("alltoall", output, input);
  c10d::checkSplitSizes(output_splits, output, size_);
  c10d::checkSplitSizes(input_splits, input, size_);
  return issue({OpType::ALLTOALL_BASE,
                "ccom:all_to_all",
                "all_to_allv",
                output_splits.empty() ? "alltoall" : nullptr,
                {input},
                {output},
                options.timeout,
                is_async(options),
                input.nbytes(),
                input.nbytes() / static_cast<size_t>(size_)},
               [output, input, output_splits, input_splits](const Member& member) {
                 ccom_torch::alltoall(member, output, input, output_splits, input_splits);
               });
}

ProcessGroup::WorkPtr ProcessGroup::alltoall(Tensors& outputs, Tensors& inputs, const AllToAllOptions& options) {
  if (inputs.empty()) invalid("alltoall", "requires non-empty tensor list");
  check_list("alltoall", outputs, inputs.front(), size_);
  check_list("alltoall", inputs, inputs.front(), size_);
  return issue({OpType::ALLTOALL, "ccom:all_to_all", "all_to_all", nullptr, inputs, outputs, options.timeout,
                is_async(options), bytes_of(inputs), 0},
               [outputs, inputs](const Member& member) { ccom_torch::alltoall(member, outputs, inputs); });
}

ProcessGroup::WorkPtr ProcessGroup::barrier(const BarrierOptions& options) {
  return issue(
      {OpType::BARRIER, "ccom:barrier", "barrier", "barrier", {}, {}, options.timeout, is_async(options), 0, 0},
      [](const Member& member) { ccom_torch::barrier(member); });
}

}  // namespace ccom_torch
