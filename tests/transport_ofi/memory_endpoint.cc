// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_ofi/memory_endpoint.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace ccom::ofi {
namespace {

constexpr size_t kPage = 4096;
uint64_t number_of(const std::byte* address) { return reinterpret_cast<uintptr_t>(address); }

class Enrolled final : public Registration {
 public:
  explicit Enrolled(Bytes bytes) : place_{number_of(bytes.data()), 1} {}
  void* descriptor() const override { return nullptr; }
  RemotePlace place() const override { return place_; }

 private:
  RemotePlace place_;
};

}  // namespace

class MemoryEndpoint final : public Endpoint {
 public:
  MemoryEndpoint(MemoryFabric& fabric, size_t number) : fabric_(fabric), number_(number) {}

  std::string address() const override { return std::to_string(number_); }
  Limits limits() const override {
    return {.message_bytes = fabric_.message_bytes_, .sends = 256, .receives = 256, .write_bytes = size_t{1} << 30};
  }
  Result<uint64_t> insert(std::string_view address) override { return std::stoull(std::string(address)); }
  Result<Region> allocate(size_t size_bytes) override {
    const size_t whole = (size_bytes + kPage - 1) / kPage * kPage;
    auto* const bytes = static_cast<std::byte*>(std::calloc(1, whole + kPage));
    regions_.emplace_back(bytes, &std::free);
    std::byte* const begin = bytes + (kPage - number_of(bytes) % kPage) % kPage;
    return Region{.bytes = {begin, size_bytes}, .place = {number_of(begin), 1}};
  }
  Result<std::unique_ptr<Registration>> enroll(Bytes bytes, Use) override {
    return std::unique_ptr<Registration>(std::make_unique<Enrolled>(bytes));
  }

  int post_send(uint64_t to, Operation& operation) override {
    if (fabric_.is_cut_ || to >= fabric_.queues_.size()) return -FI_ENOTCONN;
    std::vector<std::byte> message(operation.data, operation.data + operation.size_bytes);
    if (fabric_.hook_) fabric_.hook_(to, MemoryFabric::Arrival::Message, message);
    fabric_.deliver(to, message);
    return complete(operation);
  }
  int post_receive(Operation& operation) override {
    const std::lock_guard lock(fabric_.mutex_);
    fabric_.queues_[number_].receives.push_back(&operation);
    return 0;
  }
  int post_write(uint64_t to, Operation& operation, RemotePlace place, uint32_t immediate) override {
    if (fabric_.is_cut_ || to >= fabric_.queues_.size()) return -FI_ENOTCONN;
    auto* const target = reinterpret_cast<std::byte*>(static_cast<uintptr_t>(place.address));
    std::memcpy(target, operation.data, operation.size_bytes);
    if (fabric_.hook_) {
      fabric_.hook_(to, MemoryFabric::Arrival::Write, {target, operation.size_bytes});
      fabric_.hook_(to, MemoryFabric::Arrival::Immediate, std::as_writable_bytes(std::span(&immediate, 1)));
    }
    fabric_.deliver_immediate(to, immediate);
    return complete(operation);
  }
  Status poll(std::vector<Completion>& completions) override {
    {
      const std::lock_guard lock(fabric_.mutex_);
      MemoryFabric::Queue& mine = fabric_.queues_[number_];
      fabric_.pair_up(mine);
      completions.insert(completions.end(), mine.completions.begin(), mine.completions.end());
      mine.completions.clear();
    }
    if (completions.empty()) std::this_thread::yield();
    return Status::ok();
  }
  int descriptor() const override { return -1; }
  bool may_sleep() override { return false; }
  void shut() override {
    const std::lock_guard lock(fabric_.mutex_);
    fabric_.queues_[number_] = {};
  }

 private:
  int complete(Operation& operation) {
    const std::lock_guard lock(fabric_.mutex_);
    fabric_.queues_[number_].completions.push_back({.operation = &operation});
    return 0;
  }

  MemoryFabric& fabric_;
  const size_t number_;
  std::vector<std::unique_ptr<std::byte, decltype(&std::free)>> regions_;
};

std::unique_ptr<Endpoint> MemoryFabric::open() {
  const std::lock_guard lock(mutex_);
  queues_.emplace_back();
  return std::make_unique<MemoryEndpoint>(*this, queues_.size() - 1);
}

void MemoryFabric::deliver(size_t endpoint, ConstBytes message) {
  const std::lock_guard lock(mutex_);
  queues_[endpoint].messages.emplace_back(message.begin(), message.end());
}

void MemoryFabric::deliver_immediate(size_t endpoint, uint32_t immediate) {
  const std::lock_guard lock(mutex_);
  queues_[endpoint].completions.push_back({.immediate = immediate});
}

// Messages wait until there is a buffer.
void MemoryFabric::pair_up(Queue& queue) {
  while (!queue.messages.empty() && !queue.receives.empty()) {
    Operation& operation = *queue.receives.front();
    const std::vector<std::byte>& message = queue.messages.front();
    const size_t bytes = std::min(message.size(), operation.size_bytes);
    std::copy_n(message.begin(), bytes, operation.data);
    queue.completions.push_back(
        {.operation = &operation, .received_bytes = bytes, .error = bytes < message.size() ? FI_ETRUNC : 0});
    queue.receives.pop_front();
    queue.messages.pop_front();
  }
}

}  // namespace ccom::ofi
