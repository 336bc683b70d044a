// SPDX-License-Identifier: Apache-2.0
#include "comm/small_calls.h"

namespace ccom {

void SmallCalls::open(Rank rank, int nranks, Limit limit) {
  rank_ = rank;
  nranks_ = nranks;
  limit_ = std::move(limit);
  most_bytes_.fill(kUndecided);
  for (auto& by_root : tasks_) by_root.resize(static_cast<size_t>(nranks) + 1);
}

int64_t SmallCalls::decide(Collective collective) {
  return most_bytes_[static_cast<size_t>(collective)] = limit_(collective);
}

std::unique_ptr<PreparedTask> SmallCalls::make(Collective collective, Rank root) const {
  return std::make_unique<PreparedTask>(node_task(collective, nranks_, root), std::vector{NodeChoice{}}, rank_);
}

}  // namespace ccom
