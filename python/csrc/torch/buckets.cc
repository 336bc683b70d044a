// SPDX-License-Identifier: Apache-2.0
#include "buckets.h"

#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <string_view>

#include "mapped_memory.h"

namespace ccom_torch {
namespace {

constexpr size_t kSmallest = size_t{1} << 20;  // below this size splitting costs as much as it saves
constexpr int kOften = 3;
constexpr size_t kMostSizes = 1024, kMostCandidates = 256;
constexpr size_t kMostBytes = size_t{4} << 30;

bool is_wanted() {
  const char* asked = std::getenv("CCOM_TORCH_MAP_BUCKETS");
  return asked == nullptr || std::string_view(asked) != "0";
}

bool shares_memory(ccomComm_t comm) {
  ccomCommInfo_t info = CCOM_COMM_INFO_INIT;
  return ccomCommGetInfo(comm, &info) == ccomSuccess && info.nhosts == 1 && info.nranks > 1;
}

// Memory that is used by torch's own allocator only.
bool is_ordinary(const c10::Storage& storage) {
  return storage.resizable() && storage.data_ptr().get_deleter() == c10::GetDefaultCPUAllocator()->raw_deleter();
}

}  // namespace

Buckets::Buckets() : enabled_(is_wanted()) {}

void Buckets::allreduce(const Member& member, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  if (!enabled_ || tensor.nbytes() < kSmallest || !comes_again(member, tensor.nbytes()))
    return ccom_torch::allreduce(member, tensor, op);
  const at::Tensor plain = plain_input(tensor);
  if (plain.is_same(tensor)) map(member.comm, tensor);
  const at::Tensor flat = plain.view({-1});
  const auto edge = static_cast<int64_t>(page_bytes()) / static_cast<int64_t>(flat.itemsize());
  const at::Tensor first = flat.narrow(0, 0, edge), last = flat.narrow(0, flat.numel() - edge, edge);
  const at::Tensor edges = at::cat({first, last});
  ccom_torch::allreduce(member, edges, op);
  ccom_torch::allreduce(member, flat.narrow(0, edge, flat.numel() - 2 * edge), op);
  first.copy_(edges.narrow(0, 0, edge));
  last.copy_(edges.narrow(0, edge, edge));
  if (!plain.is_same(tensor)) tensor.copy_(plain);
}

bool Buckets::comes_again(const Member& member, size_t bytes) {
  std::lock_guard lock(mutex_);
  if (!asked_) {
    asked_ = true;
    enabled_ = shares_memory(member.comm);
  }
  if (!enabled_ || (sizes_.size() >= kMostSizes && sizes_.count(bytes) == 0)) return false;
  return ++sizes_[bytes] > kOften;
}

bool Buckets::has_come_often(const c10::Storage& storage) {
  c10::StorageImpl* const key = storage.unsafeGetStorageImpl();
  if (seen_.size() >= kMostCandidates)
    std::erase_if(seen_, [](const auto& each) { return each.second.storage.expired(); });
  const auto found = seen_.find(key);
  if (found != seen_.end() && !found->second.storage.expired()) return ++found->second.times >= kOften - 1;
  if (found != seen_.end()) seen_.erase(found);  // another storage at the same address
  if (seen_.size() < kMostCandidates) seen_.emplace(key, Seen{storage.getWeakStorageImpl(), 1});
  return false;
}

void Buckets::map(ccomComm_t comm, const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  std::lock_guard lock(mutex_);
  drop_unused(comm);
  if (mapped_.count(storage.unsafeGetStorageImpl()) > 0 || mapped_bytes_ + tensor.nbytes() > kMostBytes) return;
  if (!is_ordinary(storage) || !has_come_often(storage)) return;
  const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  const size_t page = page_bytes();
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t last = (begin + tensor.nbytes()) / page * page;
  void* handle = nullptr;
  if (ccomCommRegister(comm, reinterpret_cast<void*>(first), last - first, &handle) != ccomSuccess) return;
  mapped_.emplace(storage.unsafeGetStorageImpl(), Mapped{storage, handle, tensor.nbytes()});
  mapped_bytes_ += tensor.nbytes();
  seen_.erase(storage.unsafeGetStorageImpl());
}

void Buckets::drop_unused(ccomComm_t comm) {
  std::erase_if(mapped_, [&](const auto& each) {
    const Mapped& mapped = each.second;
    if (mapped.storage.use_count() > 1) return false;
    ccomCommDeregister(comm, mapped.handle);
    mapped_bytes_ -= mapped.bytes;
    return true;
  });
}

void Buckets::release(ccomComm_t comm) {
  std::lock_guard lock(mutex_);
  for (const auto& [key, mapped] : mapped_) ccomCommDeregister(comm, mapped.handle);
  mapped_.clear();
  seen_.clear();
  sizes_.clear();
  asked_ = false;
  enabled_ = is_wanted();
  mapped_bytes_ = 0;
}

}  // namespace ccom_torch
