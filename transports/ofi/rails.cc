// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/rails.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "transports/ofi/link.h"

namespace ccom::ofi {

Rails::Rails(std::vector<std::unique_ptr<Endpoint>> endpoints)
    : endpoints_(std::move(endpoints)),
      bytes_under_way_(endpoints_.size()),
      written_bytes_(endpoints_.size()),
      writes_under_way_(endpoints_.size()) {
  if (endpoints_.empty()) return;
  limits_ = endpoints_.front()->limits();
  for (const auto& endpoint : endpoints_) {
    const Limits other = endpoint->limits();
    limits_.sends = std::min(limits_.sends, other.sends);
    limits_.receives = std::min(limits_.receives, other.receives);
    limits_.write_bytes = std::min(limits_.write_bytes, other.write_bytes);
    limits_.registers_sources |= other.registers_sources;
  }
}

std::vector<std::string> Rails::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& endpoint : endpoints_) addresses.push_back(endpoint->address());
  return addresses;
}

Result<std::vector<uint64_t>> Rails::insert(const std::vector<std::string>& addresses) {
  std::vector<uint64_t> numbers;
  for (size_t rail = 0; rail < std::min(addresses.size(), count()); ++rail) {
    CCOM_TRY_ASSIGN(const uint64_t number, endpoints_[rail]->insert(addresses[rail]));
    numbers.push_back(number);
  }
  return numbers;
}

Result<Lease> Rails::enroll(Bytes bytes, Use use) {
  Lease lease;
  for (const auto& endpoint : endpoints_) {
    CCOM_TRY_ASSIGN(auto registration, endpoint->enroll(bytes, use));
    lease.push_back(std::move(registration));
  }
  return lease;
}

Result<Bytes> Rails::allocate(size_t size_bytes) {
  CCOM_TRY_ASSIGN(const Region region, endpoints_.front()->allocate(size_bytes));
  places_ = {region.place};
  for (size_t rail = 1; rail < count(); ++rail) {
    CCOM_TRY_ASSIGN(auto registration, endpoints_[rail]->enroll(region.bytes, Use::Target));
    places_.push_back(registration->place());
    slots_lease_.push_back(std::move(registration));
  }
  return region.bytes;
}

void Rails::post(WriteOperation& operation) {
  operation.is_busy = true;
  const auto is_same = [&operation](const WriteOperation* other) { return other->link == operation.link; };
  if (std::ranges::any_of(waiting_, is_same) || !try_post(operation)) waiting_.push_back(&operation);
}

bool Rails::try_post(WriteOperation& operation) {
  std::array<size_t, kMaxRails> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  const std::span usable(order.data(), operation.link->rail_addresses.size());
  const auto load = [this](size_t rail) { return std::pair(bytes_under_way_[rail], written_bytes_[rail]); };
  std::ranges::stable_sort(usable, {}, load);
  return std::ranges::any_of(usable, [this, &operation](size_t rail) {
    return operation.link->has_rail(rail) && try_post_on(rail, operation);
  });
}

bool Rails::try_post_on(size_t rail, WriteOperation& operation) {
  if (writes_under_way_[rail] >= limits_.sends) return false;
  operation.rail = rail;
  operation.descriptor = operation.descriptors[rail];
  const int rc = endpoints_[rail]->post_write(operation.link->rail_addresses[rail], operation,
                                              {operation.address, operation.keys[rail]}, operation.immediate);
  if (rc == -FI_EAGAIN) return false;
  ++under_way_;
  ++writes_under_way_[rail];
  bytes_under_way_[rail] += operation.size_bytes;
  written_bytes_[rail] += operation.size_bytes;
  if (rc != 0) failed_.push_back({.operation = &operation, .error = -rc});
  return true;
}

void Rails::flush() {
  if (waiting_.empty() || is_shut_) return;
  std::vector<const Link*> refused;  // few: writes that wait for one peer's connection
  std::erase_if(waiting_, [this, &refused](WriteOperation* operation) {
    if (std::ranges::find(refused, operation->link) != refused.end()) return false;
    if (try_post(*operation)) return true;
    refused.push_back(operation->link);
    return false;
  });
}

Status Rails::poll(std::vector<Completion>& completions) {
  if (is_shut_) return Status::ok();
  const size_t before = completions.size();
  std::ranges::move(std::exchange(failed_, {}), std::back_inserter(completions));
  Status first;
  for (const auto& endpoint : endpoints_) {
    if (Status status = endpoint->poll(completions); first.is_ok()) first = std::move(status);
  }
  for (size_t i = before; i < completions.size(); ++i) {
    const auto* operation = static_cast<const WriteOperation*>(completions[i].operation);
    if (operation == nullptr) continue;
    --under_way_;
    --writes_under_way_[operation->rail];
    bytes_under_way_[operation->rail] -= operation->size_bytes;
  }
  return first;
}

void Rails::drop(const Link& link) {
  std::erase_if(waiting_, [&link](WriteOperation* operation) {
    if (operation->link != &link) return false;
    operation->is_busy = false;
    return true;
  });
}

void Rails::shut() {
  if (std::exchange(is_shut_, true)) return;
  for (const auto& endpoint : endpoints_) endpoint->shut();
  waiting_.clear();
  failed_.clear();
  under_way_ = 0;
}

}  // namespace ccom::ofi
