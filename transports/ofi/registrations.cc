// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/registrations.h"

#include <algorithm>

namespace ccom::ofi {

Result<std::shared_ptr<const Lease>> Registrations::get(Bytes bytes, Use use) {
  const auto make = [this, bytes, use]() -> Result<std::shared_ptr<const Lease>> {
    CCOM_TRY_ASSIGN(Lease lease, rails_.enroll(bytes, use));
    return std::make_shared<const Lease>(std::move(lease));
  };
  if (arena_ == nullptr) return make();
  // Read before the memory is inspected: what is released later has a later generation.
  if (const uint64_t now = arena_->generation(); now != generation_) {
    forget();
    generation_ = now;
  }
  if (bytes.size() > kMostKeptBytes / 2 || !arena_->offset_of(bytes.data(), bytes.size())) return make();
  const Key key{bytes.data(), bytes.size(), use};
  const auto found = kept_.find(key);
  if (found != kept_.end()) {
    found->second.used = ++calls_;
    return found->second.lease;
  }
  CCOM_TRY_ASSIGN(std::shared_ptr<const Lease> lease, make());
  make_room(bytes.size());
  kept_[key] = {lease, ++calls_};
  kept_bytes_ += bytes.size();
  return lease;
}

// Evicts the least recently used. They are few, so a linear search is cheap compared with a registration.
void Registrations::make_room(size_t size_bytes) {
  while (!kept_.empty() && (kept_.size() >= kMostKept || kept_bytes_ + size_bytes > kMostKeptBytes)) {
    const auto oldest = std::ranges::min_element(kept_, {}, [](const auto& entry) { return entry.second.used; });
    kept_bytes_ -= oldest->first.size_bytes;
    kept_.erase(oldest);
  }
}

void Registrations::forget() {
  kept_.clear();
  kept_bytes_ = 0;
}

}  // namespace ccom::ofi
