// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/seen.h"

#include <algorithm>
#include <numeric>

namespace ccom {
namespace {

template <typename T, typename Member>
T sum(const std::vector<CallTotals::Of>& calls, Member member) {
  return std::accumulate(calls.begin(), calls.end(), T{},
                         [member](T total, const CallTotals::Of& of) { return total + of.*member; });
}

}  // namespace

uint64_t RankSeen::calls() const { return sum<uint64_t>(totals.calls, &CallTotals::Of::calls); }
uint64_t RankSeen::bytes() const { return sum<uint64_t>(totals.calls, &CallTotals::Of::bytes); }

// Short calls are timed now and then, waits always.
double RankSeen::seconds() const {
  double total = activity.state == RankActivity::State::InCall ? std::max(activity.seconds, 0.0) : 0;
  for (const CallTotals::Of& of : totals.calls) total += std::max(of.seconds, of.waited_seconds);
  return total;
}

double RankSeen::waited() const {
  const bool waits = is_waiting(activity);
  return sum<double>(totals.calls, &CallTotals::Of::waited_seconds) + (waits ? std::max(activity.waited, 0.0) : 0);
}

const RankSeen* CommunicatorSeen::find(Rank rank) const {
  const auto found = std::ranges::find(seen, rank, [](const RankSeen& each) { return each.activity.rank; });
  return found == seen.end() ? nullptr : &*found;
}

double CommunicatorSeen::told_before() const {
  double longest = -1;
  for (const RankSeen& rank : seen) longest = std::max(longest, rank.told_before);
  return longest;
}

}  // namespace ccom
