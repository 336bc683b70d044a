// SPDX-License-Identifier: Apache-2.0
//
// What a part of a communicator has of the whole, and how its ranks come by their host's memory.
#include <algorithm>

#include "liveness/control_family.h"
#include "setup/comm_setup.h"
#include "setup/exchange.h"
#include "setup/exchanges.pb.h"

namespace ccom {

// What ranks have found out about their host does not depend on who is in the communicator.
void CommSetup::inherit(const CommSetup& parent) {
  parent_ = parent.membership_.communicator;
  measured_costs_ = parent.measured_costs_;
  means_ = parent.means_;
  has_fences_ = parent.has_fences_;
  family_ = parent.monitor_->family();
  const auto member_of = [&](Rank rank) {
    return parent.members_.empty() ? rank : parent.members_[static_cast<size_t>(rank)];
  };
  for (const Rank rank : membership_.parents) members_.push_back(member_of(rank));
  if (!needs_.has_collectives || parent.arenas_ == nullptr) return;
  arenas_ = parent.arenas_;
  for (const Rank rank : local_ranks_) {
    const auto known = std::ranges::find(parent.local_ranks_, membership_.parents[static_cast<size_t>(rank)]);
    const auto place = static_cast<size_t>(known - parent.local_ranks_.begin());
    arena_places_.push_back(parent.inherits() ? parent.arena_places_[place] : place);
  }
}

Status CommSetup::join_segment(const std::vector<wire::Capabilities>& all, const WaitLimit& limit) {
  if (local_ranks_.size() == 1) return {};
  const wire::Capabilities& leader = all[static_cast<size_t>(local_ranks_.front())];
  if (leader.has_place()) {
    const std::shared_ptr<SharedSegment> arena = inherits() ? arenas_->arena_of(arena_places_.front()) : nullptr;
    if (arena == nullptr)
      return error(Code::InternalError, "rank %d has put the host's memory into an arena that is not mapped here",
                   local_ranks_.front());
    return segment_->join(arena, leader.place());
  }
  if (local_ranks_.size() > 1 && leader.segment().empty())
    return incomplete_part("segments", local_ranks_.front(), "segment");
  std::vector<uint64_t> processes;
  for (const Rank rank : local_ranks_) processes.push_back(all[static_cast<size_t>(rank)].process());
  return segment_->share(leader.segment(), processes, limit);
}

// The ranks of a part that wait for one that cannot dial hear of it on their board.
WaitLimit CommSetup::until_failure(const WaitLimit& limit) const {
  return {limit.deadline(), [this, limit] { return limit.is_reached() || monitor_->failed(); }};
}

}  // namespace ccom
