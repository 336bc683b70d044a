// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "collectives.h"
#include "types.h"

namespace ccom_torch {
namespace {

// A group of sends and receives that is ended even if an exception is thrown in between.
class Exchange {
 public:
  explicit Exchange(const Member& member) : member_(member) { check(ccomGroupStart(), member.comm); }
  ~Exchange() {
    if (!ended_) ccomGroupEnd();
  }
  void swap(int peer, const void* send, size_t send_bytes, void* receive, size_t receive_bytes) {
    if (peer == member_.rank) return std::memcpy(receive, send, send_bytes), void();
    if (send_bytes > 0) check(ccomSend(send, send_bytes, ccomUint8, peer, member_.comm, nullptr), member_.comm);
    if (receive_bytes > 0)
      check(ccomRecv(receive, receive_bytes, ccomUint8, peer, member_.comm, nullptr), member_.comm);
  }
  void end() {
    ended_ = true;
    check(ccomGroupEnd(), member_.comm);
  }

 private:
  const Member member_;
  bool ended_ = false;
};

// Bytes of each rank's share. No splits: equal shares.
std::vector<size_t> shares(const at::Tensor& tensor, const std::vector<int64_t>& splits, int size) {
  const size_t ranks = static_cast<size_t>(size);
  if (splits.empty()) return std::vector<size_t>(ranks, tensor.nbytes() / ranks);
  const size_t rows = static_cast<size_t>(tensor.dim() == 0 ? 1 : tensor.size(0));
  const size_t row_bytes = rows == 0 ? 0 : tensor.nbytes() / rows;
  std::vector<size_t> bytes;
  for (const int64_t split : splits) bytes.push_back(static_cast<size_t>(split) * row_bytes);
  return bytes;
}

}  // namespace

void alltoall(const Member& member, const at::Tensor& output, const at::Tensor& input,
              const std::vector<int64_t>& output_splits, const std::vector<int64_t>& input_splits) {
  at::Tensor from = plain_input(input);
  at::Tensor to = is_plain(output) && !overlap(output, from.const_data_ptr(), from.nbytes())
                      ? output
                      : at::empty(output.sizes(), output.options());
  if (output_splits.empty() && input_splits.empty()) {
    const Elements elements = moved_elements(input.scalar_type());
    const size_t count = static_cast<size_t>(input.numel()) * elements.factor / static_cast<size_t>(member.size);
    check(ccomAlltoAll(from.const_data_ptr(), to.mutable_data_ptr(), count, elements.type, member.comm, nullptr),
          member.comm);
  } else {
    const std::vector<size_t> sent = shares(from, input_splits, member.size);
    const std::vector<size_t> received = shares(to, output_splits, member.size);
    const auto* next_out = static_cast<const std::byte*>(from.const_data_ptr());
    auto* next_in = static_cast<std::byte*>(to.mutable_data_ptr());
    Exchange exchange(member);
    for (int peer = 0; peer < member.size; ++peer) {
      const size_t out = sent[static_cast<size_t>(peer)], in = received[static_cast<size_t>(peer)];
      exchange.swap(peer, next_out, out, next_in, in);
      next_out += out;
      next_in += in;
    }
    exchange.end();
  }
  if (!to.is_same(output)) output.copy_(to);
}

void alltoall(const Member& member, const Tensors& outputs, const Tensors& inputs) {
  Tensors from, to;
  for (const at::Tensor& input : inputs) from.push_back(plain_input(input));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool apart = std::none_of(from.begin(), from.end(), [&](const at::Tensor& t) {
      return is_plain(outputs[i]) && overlap(outputs[i], t.const_data_ptr(), t.nbytes());
    });
    to.push_back(is_plain(outputs[i]) && apart ? outputs[i] : at::empty(outputs[i].sizes(), outputs[i].options()));
  }
  Exchange exchange(member);
  for (size_t peer = 0; peer < from.size(); ++peer) {
    exchange.swap(static_cast<int>(peer), from[peer].const_data_ptr(), from[peer].nbytes(), to[peer].mutable_data_ptr(),
                  to[peer].nbytes());
  }
  exchange.end();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!to[i].is_same(outputs[i])) outputs[i].copy_(to[i]);
  }
}

}  // namespace ccom_torch
