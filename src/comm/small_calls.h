// SPDX-License-Identifier: Apache-2.0
//
// Which calls of all ranks of one host are so short that their data travel in arrival lines and mail. They run without
// a program; ShmCollectives does with them what any program of one Host stage says.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "base/collective.h"

namespace ccom {

// Belongs to one thread at a time.
class SmallCalls {
 public:
  // The most bytes of a unit of that collective's small calls; kNone: it has none.
  using Limit = std::function<int64_t(Collective)>;
  static constexpr int64_t kNone = -1;

  // limit: asked when a collective is first called, because planning takes long with many ranks.
  void open(Limit limit) {
    limit_ = std::move(limit);
    most_bytes_.fill(kUndecided);
  }
  bool serves(Collective collective, size_t unit_bytes) {
    const int64_t most = most_bytes_[static_cast<size_t>(collective)];
    if (static_cast<int64_t>(unit_bytes) <= most) return true;
    return most == kUndecided && static_cast<int64_t>(unit_bytes) <= decide(collective);
  }

 private:
  static constexpr size_t kCollectives = static_cast<size_t>(Collective::SendReceive) + 1;
  static constexpr int64_t kUndecided = -2;
  static constexpr auto kNothing = [] {
    std::array<int64_t, kCollectives> none{};
    none.fill(kNone);
    return none;
  }();

  int64_t decide(Collective collective) { return most_bytes_[static_cast<size_t>(collective)] = limit_(collective); }

  Limit limit_;
  std::array<int64_t, kCollectives> most_bytes_ = kNothing;
};

}  // namespace ccom
