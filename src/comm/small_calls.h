// SPDX-License-Identifier: Apache-2.0
//
// Calls of all ranks of one host that are so short that their data travel in flag lines and mail: which those are, and
// their tasks. They run without a program; ShmCollectives does with them what any program of one Host stage says.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/collective.h"
#include "node/node_call.h"

namespace ccom {

// Belongs to one thread at a time.
class SmallCalls {
 public:
  // The most bytes of a unit of that collective's small calls; kNone: it has none.
  using Limit = std::function<int64_t(Collective)>;
  static constexpr int64_t kNone = -1;

  // limit: asked when a collective is first called, because planning takes long with many ranks.
  void open(Rank rank, int nranks, Limit limit);
  bool serves(Collective collective, size_t unit_bytes) {
    const int64_t most = most_bytes_[static_cast<size_t>(collective)];
    if (static_cast<int64_t>(unit_bytes) <= most) return true;
    return most == kUndecided && static_cast<int64_t>(unit_bytes) <= decide(collective);
  }

  PreparedTask& task(Collective collective, Rank root) {
    const auto column = static_cast<size_t>(root) + 1;  // 0: no root
    std::unique_ptr<PreparedTask>& known = tasks_[static_cast<size_t>(collective)][column];
    if (known == nullptr) [[unlikely]]
      known = make(collective, root);
    return *known;
  }

 private:
  static constexpr size_t kCollectives = static_cast<size_t>(Collective::SendReceive) + 1;
  static constexpr int64_t kUndecided = -2;
  static constexpr auto kNothing = [] {
    std::array<int64_t, kCollectives> none{};
    none.fill(kNone);
    return none;
  }();

  int64_t decide(Collective collective);
  std::unique_ptr<PreparedTask> make(Collective collective, Rank root) const;

  Rank rank_ = 0;
  int nranks_ = 0;
  Limit limit_;
  std::array<int64_t, kCollectives> most_bytes_ = kNothing;
  std::array<std::vector<std::unique_ptr<PreparedTask>>, kCollectives> tasks_;  // by root + 1
};

}  // namespace ccom
