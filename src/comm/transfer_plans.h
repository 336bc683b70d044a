// SPDX-License-Identifier: Apache-2.0
//
// Plans of sends and receives, ready to run: the latest of each peer and direction is remembered.
#pragma once

#include <memory>
#include <vector>

#include "comm/request.h"
#include "engine/bound_plan.h"

namespace ccom {

// Belongs to one thread at a time. `channels` outlive it.
class TransferPlans {
 public:
  TransferPlans(Rank rank, int nranks, ChannelSource& channels);

  Result<std::shared_ptr<const BoundPlan>> get(const Request& request);

 private:
  struct Known {
    std::shared_ptr<const CompiledPlan> compiled{};
    std::shared_ptr<const BoundPlan> bound{};
    size_t count = 0;
  };

  const Rank rank_;
  const int nranks_;
  ChannelSource& channels_;
  std::vector<Known> known_;  // receives by peer, then sends by peer
};

}  // namespace ccom
