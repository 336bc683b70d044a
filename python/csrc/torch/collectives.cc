// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "parts.h"
#include "types.h"

namespace ccom_torch {
namespace {

// Coalesced tensors below this size are packed together: a call costs more than the copy.
constexpr size_t kTogetherBytes = size_t{256} << 10;

const std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<const std::byte*>(tensor.const_data_ptr()); }

// An output in contiguous memory: the tensor itself, or a temporary that finish() copies back.
class Output {
 public:
  explicit Output(const at::Tensor& tensor, bool keeps_values = false) : tensor_(tensor) {
    if (is_plain(tensor)) {
      plain_ = tensor;
    } else if (keeps_values) {
      plain_ = plain_input(tensor);
    } else {
      plain_ = at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous));
    }
  }
  const at::Tensor& plain() const { return plain_; }
  void* data() const { return plain_.mutable_data_ptr(); }
  void finish() const {
    if (!plain_.is_same(tensor_)) tensor_.copy_(plain_);
  }

 private:
  const at::Tensor tensor_;
  at::Tensor plain_;
};

// A list of tensors as contiguous memory, in order: in place if they are adjacent, otherwise a copy.
class Row {
 public:
  Row(const Tensors& tensors, bool is_input) : tensors_(tensors) {
    if (lies_in_a_row()) {
      data_ = const_cast<std::byte*>(bytes_of(tensors.front()));
      return;
    }
    int64_t total = 0;
    for (const at::Tensor& tensor : tensors) {
      begins_.push_back(total);
      total += tensor.numel();
    }
    copy_ = at::empty({total}, tensors.front().options().requires_grad(false));
    data_ = static_cast<std::byte*>(copy_.mutable_data_ptr());
    if (!is_input) return;
    for (size_t i = 0; i < tensors.size(); ++i) slot(i).copy_(tensors[i].reshape(-1));
  }
  std::byte* data() const { return data_; }
  void finish() const {
    if (!copy_.defined()) return;
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].copy_(slot(i).view(tensors_[i].sizes()));
  }

 private:
  at::Tensor slot(size_t i) const { return copy_.narrow(0, begins_[i], tensors_[i].numel()); }
  bool lies_in_a_row() const {
    const std::byte* next = bytes_of(tensors_.front());
    return std::all_of(tensors_.begin(), tensors_.end(), [&](const at::Tensor& tensor) {
      const bool follows = is_plain(tensor) && bytes_of(tensor) == next;
      next += tensor.nbytes();
      return follows;
    });
  }

  const Tensors& tensors_;
  at::Tensor copy_;
  std::vector<int64_t> begins_;  // in it
  std::byte* data_ = nullptr;
};

bool same_sizes(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& tensor) { return tensor.numel() == tensors.front().numel(); });
}

struct Counted {
  size_t count;
  ccomDataType_t type;
};

Counted reduced(const at::Tensor& tensor) {
  const Elements elements = arithmetic_elements(tensor.scalar_type());
  return {static_cast<size_t>(tensor.numel()) * elements.factor, elements.type};
}

Counted moved(const at::Tensor& tensor) {
  const Elements elements = moved_elements(tensor.scalar_type());
  return {static_cast<size_t>(tensor.numel()) * elements.factor, elements.type};
}

// Input of an out-of-place collective: a copy if it overlaps the output partly, other than exactly at `in_place`.
at::Tensor input_beside(const at::Tensor& input, const at::Tensor& output, const std::byte* in_place) {
  at::Tensor plain = plain_input(input);
  return bytes_of(plain) != in_place && overlap(plain, output.const_data_ptr(), output.nbytes()) ? plain.clone()
                                                                                                 : plain;
}

// The shares are adjacent in [all, all + bytes), of `counts` elements, or equal ones. An output among them is filled
// through a copy, because a reduction in place would overwrite the other shares.
void reduce_shares(const Member& member, const at::Tensor& output, const void* all, size_t bytes,
                   const c10d::ReduceOp& op, const std::vector<size_t>& counts = {}) {
  const Output mine(output);
  const at::Tensor to = overlap(mine.plain(), all, bytes) ? at::empty_like(mine.plain()) : mine.plain();
  const Operator reduction(op, output.scalar_type(), member.comm);
  const Counted data = reduced(output);
  void* const target = to.mutable_data_ptr();
  check(counts.empty()
            ? ccomReduceScatter(all, target, data.count, data.type, reduction.get(), member.comm, nullptr)
            : ccomReduceScatterV(all, target, counts.data(), data.type, reduction.get(), member.comm, nullptr),
        member.comm);
  if (!to.is_same(mine.plain())) mine.plain().copy_(to);
  mine.finish();
}

}  // namespace

bool overlap(const at::Tensor& plain, const void* begin, size_t bytes) {
  const auto* other = static_cast<const std::byte*>(begin);
  return plain.nbytes() > 0 && bytes_of(plain) < other + bytes && other < bytes_of(plain) + plain.nbytes();
}

bool is_plain(const at::Tensor& tensor) { return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg(); }

at::Tensor plain_input(const at::Tensor& tensor) {
  return is_plain(tensor) ? tensor : tensor.resolve_conj().resolve_neg().contiguous();
}

void allreduce(const Member& member, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  const Output output(tensor, true);
  const Operator reduction(op, tensor.scalar_type(), member.comm);
  const Counted data = reduced(tensor);
  check(ccomAllReduce(output.data(), output.data(), data.count, data.type, reduction.get(), member.comm, nullptr),
        member.comm);
  output.finish();
}

void allreduce_residual(const Member& member, const at::Tensor& tensor, const at::Tensor& residual,
                        const c10d::ReduceOp& op) {
  const Output output(tensor, true);
  const Operator reduction(op, tensor.scalar_type(), member.comm);
  const Counted data = reduced(tensor);
  check(ccomAllReduceResidual(output.data(), output.data(), residual.mutable_data_ptr(), data.count, data.type,
                              reduction.get(), member.comm, nullptr),
        member.comm);
  output.finish();
}

void allreduce(const Member& member, const Tensors& tensors, const c10d::ReduceOp& op) {
  std::map<at::ScalarType, Tensors> together;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.nbytes() < kTogetherBytes) {
      together[tensor.scalar_type()].push_back(tensor);
    } else {
      allreduce(member, tensor, op);
    }
  }
  for (const auto& [type, small] : together) {
    if (small.size() == 1) {
      allreduce(member, small.front(), op);
      continue;
    }
    Tensors flat;
    for (const at::Tensor& tensor : small) flat.push_back(tensor.reshape(-1));
    const at::Tensor joined = at::cat(flat);
    allreduce(member, joined, op);
    int64_t begin = 0;
    for (const at::Tensor& tensor : small) {
      tensor.copy_(joined.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  }
}

void broadcast(const Member& member, const at::Tensor& tensor, int root) {
  const Output output(tensor, member.rank == root);
  const Counted data = moved(tensor);
  check(ccomBroadcast(output.data(), output.data(), data.count, data.type, root, member.comm, nullptr), member.comm);
  if (member.rank != root) output.finish();
}

void reduce(const Member& member, const at::Tensor& tensor, const c10d::ReduceOp& op, int root) {
  const Output output(tensor, true);
  const Operator reduction(op, tensor.scalar_type(), member.comm);
  const Counted data = reduced(tensor);
  check(ccomReduce(output.data(), output.data(), data.count, data.type, reduction.get(), root, member.comm, nullptr),
        member.comm);
  if (member.rank == root) output.finish();
}

void allgather(const Member& member, const at::Tensor& output, const at::Tensor& input) {
  const Output all(output);
  const auto* slot = bytes_of(all.plain()) + static_cast<size_t>(member.rank) * input.nbytes();
  const at::Tensor mine = input_beside(input, all.plain(), slot);
  const Counted data = moved(input);
  check(ccomAllGather(mine.const_data_ptr(), all.data(), data.count, data.type, member.comm, nullptr), member.comm);
  all.finish();
}

void allgather(const Member& member, const Tensors& outputs, const at::Tensor& input) {
  const at::Tensor mine = plain_input(input);
  if (!same_sizes(outputs)) {
    const Outputs all(outputs, {mine});
    const Parts to = parts_of(all.plain());
    check(ccomAllGatherV(mine.const_data_ptr(), to.counts[static_cast<size_t>(member.rank)], to.base, to.counts.data(),
                         to.places.data(), to.type, member.comm, nullptr),
          member.comm);
    return all.finish();
  }
  const Row row(outputs, false);
  const Counted data = moved(input);
  check(ccomAllGather(mine.const_data_ptr(), row.data(), data.count, data.type, member.comm, nullptr), member.comm);
  row.finish();
}

void gather(const Member& member, const Tensors& outputs, const at::Tensor& input, int root) {
  const at::Tensor mine = plain_input(input);
  const Counted data = moved(input);
  const auto call = [&](void* all) {
    check(ccomGather(mine.const_data_ptr(), all, data.count, data.type, root, member.comm, nullptr), member.comm);
  };
  if (member.rank != root) return call(nullptr);
  const Row row(outputs, false);
  call(row.data());
  row.finish();
}

void scatter(const Member& member, const at::Tensor& output, const Tensors& inputs, int root) {
  const Output mine(output);
  const Counted data = moved(output);
  const auto call = [&](const void* all) {
    check(ccomScatter(all, mine.data(), data.count, data.type, root, member.comm, nullptr), member.comm);
  };
  member.rank == root ? call(Row(inputs, true).data()) : call(nullptr);
  mine.finish();
}

void reduce_scatter(const Member& member, const at::Tensor& output, const at::Tensor& input, const c10d::ReduceOp& op) {
  const at::Tensor all = plain_input(input);
  reduce_shares(member, output, all.const_data_ptr(), all.nbytes(), op);
}

void reduce_scatter(const Member& member, const at::Tensor& output, const Tensors& inputs, const c10d::ReduceOp& op) {
  const Row row(inputs, true);
  std::vector<size_t> counts;
  size_t bytes = 0;
  for (const at::Tensor& input : inputs) {
    counts.push_back(reduced(input).count);
    bytes += input.nbytes();
  }
  if (same_sizes(inputs)) counts.clear();
  reduce_shares(member, output, row.data(), bytes, op, counts);
}

void barrier(const Member& member) { check(ccomBarrier(member.comm, nullptr), member.comm); }

}  // namespace ccom_torch
