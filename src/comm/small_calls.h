// SPDX-License-Identifier: Apache-2.0
//
// Calls of all ranks of one host that are so short that their data travel in flag lines and mail: which those are, and
// their tasks. They run without a program; ShmCollectives does with them what any program of one Host stage says.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/collective.h"
#include "node/node_call.h"

namespace ccom {

// Belongs to one thread at a time.
class SmallCalls {
 public:
  // Calls of a collective, whose units have at most `unit_bytes`.
  void allow(Collective collective, size_t unit_bytes) {
    most_bytes_[static_cast<size_t>(collective)] = static_cast<int64_t>(unit_bytes);
  }
  bool serves(Collective collective, size_t unit_bytes) const {
    return static_cast<int64_t>(unit_bytes) <= most_bytes_[static_cast<size_t>(collective)];
  }

  void open(Rank rank, int nranks);
  PreparedTask& task(Collective collective, Rank root) {
    const auto column = static_cast<size_t>(root) + 1;  // 0: no root
    std::unique_ptr<PreparedTask>& known = tasks_[static_cast<size_t>(collective)][column];
    if (known == nullptr) [[unlikely]]
      known = make(collective, root);
    return *known;
  }

 private:
  static constexpr size_t kCollectives = static_cast<size_t>(Collective::SendReceive) + 1;
  static constexpr auto kNone = [] {
    std::array<int64_t, kCollectives> none{};
    none.fill(-1);
    return none;
  }();

  std::unique_ptr<PreparedTask> make(Collective collective, Rank root) const;

  Rank rank_ = 0;
  int nranks_ = 0;
  std::array<int64_t, kCollectives> most_bytes_ = kNone;
  std::array<std::vector<std::unique_ptr<PreparedTask>>, kCollectives> tasks_;  // by root + 1
};

}  // namespace ccom
