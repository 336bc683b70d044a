// SPDX-License-Identifier: Apache-2.0
#include "comm/lingering.h"

#include "base/fork.h"
#include "comm/communicator.h"

namespace ccom {

Lingering& Lingering::of_process() {
  static constinit PerProcess<Lingering> instance;
  return instance.get();
}

void Lingering::enter(uint64_t number) {
  const Lock lock(mutex_);
  ++ranks_[number].living;
}

std::vector<std::unique_ptr<Communicator>> Lingering::leave(uint64_t number, std::unique_ptr<Communicator> ended) {
  const Lock lock(mutex_);
  const auto found = ranks_.find(number);
  if (found == ranks_.end()) return {};
  Ranks& ranks = found->second;
  if (ended != nullptr) ranks.ended.push_back(std::move(ended));
  if (--ranks.living > 0) return {};
  std::vector<std::unique_ptr<Communicator>> all = std::move(ranks.ended);
  ranks_.erase(found);
  return all;
}

}  // namespace ccom
