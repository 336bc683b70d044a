// SPDX-License-Identifier: Apache-2.0
#include "liveness/straggler_watch.h"

#include "liveness/call_mismatch.h"

namespace ccom {

std::optional<StragglerReport> StragglerWatch::poll(ControlTree& tree) const {
  const bool is_asked_for = board_.is_poll_asked_for();
  if (!tree.straggler_poll().is_on() && !is_asked_for) return std::nullopt;
  StragglerReport own = on_host();
  own.is_asked_for = is_asked_for;
  tree.poll_stragglers(std::move(own));
  StragglerReport found = tree.straggler_poll().result();
  const StragglerReport slowest{found.calls, found.ranks};
  if (board_.stragglers() != slowest) board_.publish_stragglers(slowest);
  return found;
}

std::optional<Status> difference_error(const StragglerReport& known) {
  const auto found = known.find_difference();
  if (!found) return std::nullopt;
  const auto& [a, b] = *found;
  return mismatch_error(a.rank, text_of(a.call), b.rank, text_of(b.call));
}

}  // namespace ccom
