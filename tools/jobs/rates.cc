// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/rates.h"

#include <algorithm>

namespace ccom {
namespace {

// Counters of a process that was replaced begin anew.
double increase(uint64_t before, uint64_t now) { return now > before ? static_cast<double>(now - before) : 0; }

double share(double before, double now, double seconds) { return std::clamp((now - before) / seconds, 0.0, 1.0); }

}  // namespace

Rates::Rates(const HostSeen& before, const HostSeen& now) {
  const double seconds = static_cast<double>(now.at_ns - before.at_ns) * 1e-9;
  if (seconds <= 0) return;
  for (const CommunicatorSeen& communicator : now.communicators) {
    const auto earlier = std::ranges::find(before.communicators, communicator.number, &CommunicatorSeen::number);
    if (earlier == before.communicators.end()) continue;
    for (const RankSeen& rank : communicator.seen) {
      const RankSeen* const was = earlier->find(rank.activity.rank);
      if (was == nullptr || !was->is_here() || !rank.is_here()) continue;
      ranks_[{communicator.number, rank.activity.rank}] = {
          increase(was->calls(), rank.calls()) / seconds, increase(was->bytes(), rank.bytes()) / seconds,
          share(was->seconds(), rank.seconds(), seconds), share(was->waited(), rank.waited(), seconds)};
    }
  }
  for (const LinkSeen& link : now.links) {
    const auto is_it = [&](const LinkSeen& other) {
      return std::tie(other.pid, other.local, other.remote) == std::tie(link.pid, link.local, link.remote);
    };
    const auto was = std::ranges::find_if(before.links, is_it);
    if (was == before.links.end()) continue;
    links_[{link.pid, link.local, link.remote}] = {
        increase(was->sent, link.sent) / seconds, increase(was->received, link.received) / seconds,
        increase(was->retransmits, link.retransmits) / seconds, share(was->sending, link.sending, seconds)};
  }
}

std::optional<Rate> Rates::of(uint64_t communicator, Rank rank) const {
  const auto found = ranks_.find({communicator, rank});
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Rate> Rates::of(const CommunicatorSeen& communicator) const {
  Rate total;
  double count = 0;
  for (const RankSeen& rank : communicator.seen) {
    const std::optional<Rate> rate = of(communicator.number, rank.activity.rank);
    if (!rate) continue;
    ++count;
    total.calls += rate->calls;
    total.bytes += rate->bytes;
    total.in_calls += rate->in_calls;
    total.waited += rate->waited;
  }
  if (count == 0) return std::nullopt;
  return Rate{total.calls / count, total.bytes / count, total.in_calls / count, total.waited / count};
}

std::optional<LinkRate> Rates::of(const LinkSeen& link) const {
  const auto found = links_.find({link.pid, link.local, link.remote});
  return found == links_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace ccom
