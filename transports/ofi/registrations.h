// SPDX-License-Identifier: Apache-2.0
//
// Registrations of user memory, kept for the next message only where that can be right.
//
// A device that pins pages goes on using them after the program has unmapped the memory and mapped other memory at the
// same address; whoever keeps a registration must notice. Without a thread, hooks in the allocator or privileges, we
// can notice it for the memory of ccom's own arena (ccomMemAlloc, ccomCommRegister), which counts its generations.
// These registrations are kept, a bounded number of them, until the generation changes. All other memory is registered
// for one message at a time: providers to which that is expensive (efa, verbs) have a cache of their own below, with a
// monitor of the address space (docs/ofi.md).
#pragma once

#include <compare>
#include <map>
#include <memory>

#include "memory/arena.h"
#include "transports/ofi/rails.h"

namespace ccom::ofi {

class Registrations {
 public:
  // Both outlive this; no arena: nothing is kept.
  Registrations(Rails& rails, const Arena* arena) : rails_(rails), arena_(arena) {}
  // Lives at least as long as the result.
  Result<std::shared_ptr<const Lease>> get(Bytes bytes, Use use);
  // Keeps none.
  void forget();
  // The same without closing any: for a forked child, whose parent's they are.
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
    uint64_t used = 0;  // when, counted in calls
  };
  void make_room(size_t size_bytes);

  Rails& rails_;
  const Arena* const arena_;
  std::map<Key, Kept> kept_;
  size_t kept_bytes_ = 0;
  uint64_t generation_ = 0, calls_ = 0;
};

}  // namespace ccom::ofi
