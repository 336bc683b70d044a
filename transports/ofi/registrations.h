// SPDX-License-Identifier: Apache-2.0
//
// Registrations of user memory, cached between messages only where that is safe.
//
// A device that pins pages keeps using them after the program has unmapped the memory and mapped other memory at the
// same address; a registration cache must detect that. Without a thread, allocator hooks or privileges, this is
// possible only for memory of ccom's own arena (ccomMemAlloc, ccomCommRegister), which counts its generations. A
// bounded number of these registrations is cached until the generation changes. All other memory is registered for one
// message at a time: providers to which that is expensive (efa, verbs) have their own cache with a memory monitor
// (docs/ofi.md).
#pragma once

#include <compare>
#include <map>
#include <memory>

#include "memory/arena.h"
#include "transports/ofi/rails.h"

namespace ccom::ofi {

class Registrations {
 public:
  // Both must outlive this; without an arena nothing is cached.
  Registrations(Rails& rails, const Arena* arena) : rails_(rails), arena_(arena) {}
  // Must outlive the result.
  Result<std::shared_ptr<const Lease>> get(Bytes bytes, Use use);
  // Never cached.
  void forget();
  // The same without closing them: in a forked child they belong to the parent.
  void abandon() { (void)new auto(std::move(kept_)); }
  size_t kept() const { return kept_.size(); }

  static constexpr size_t kMostKept = 256;
  static constexpr size_t kMostKeptBytes = size_t{1} << 30;

 private:
  struct Key {
    const std::byte* begin;
    size_t size_bytes;
    Use use;
    auto operator<=>(const Key&) const = default;
  };
  struct Kept {
    std::shared_ptr<const Lease> lease;
    uint64_t used = 0;  // last use, counted in calls
  };
  void make_room(size_t size_bytes);

  Rails& rails_;
  const Arena* const arena_;
  std::map<Key, Kept> kept_;
  size_t kept_bytes_ = 0;
  uint64_t generation_ = 0, calls_ = 0;
};

}  // namespace ccom::ofi
