// SPDX-License-Identifier: Apache-2.0
#include "observe/rank_waits.h"

#include <algorithm>
#include <cstring>

#include "observe/source_line.h"

namespace ccom {

namespace {

// site_of: the text of a reference.
template <typename SiteOf>
RankWaits waits_of(const CallTotals& totals, SiteOf site_of) {
  RankWaits waits;
  for (const CallTotals::Of& of : totals.calls) {
    waits.in_calls += of.seconds;
    waits.waited += of.waited_seconds;
    waits.is_sampled = waits.is_sampled || (!of.is_exact && of.collective != Collective::SendReceive);
  }
  for (const CallTotals::WaitedFor& of : totals.waited_for) {
    waits.waited_for.push_back({of.rank, of.seconds - of.too_many_seconds, of.waits, of.collective, site_of(of.site),
                                of.place_seconds, of.place_waits, of.longest_seconds, of.longest_call});
  }
  std::ranges::sort(waits.waited_for, std::greater<>(), &RankWaits::For::seconds);
  return waits;
}

}  // namespace

RankWaits waits_of(const CallTotals& totals, Rank rank, double seconds) {
  RankWaits waits = waits_of(totals, [](uint32_t) { return std::string(); });
  waits.rank = rank;
  waits.seconds = seconds;
  return waits;
}

RankWaits read_waits(const ActivityRecord& record, Rank rank, double seconds, bool reads_files) {
  RankWaits waits = waits_of(totals_of(record.counters),
                             [&](uint32_t site) { return with_source_line(record.texts.find(site), reads_files); });
  waits.rank = rank;
  waits.seconds = seconds;
  return waits;
}

WaitsOnWire to_wire(const RankWaits& waits) {
  WaitsOnWire told{waits.seconds, waits.in_calls, waits.waited, waits.rank, waits.is_sampled ? 1U : 0U, {}};
  for (WaitsOnWire::For& of : told.waited_for) of.rank = -1;
  for (size_t i = 0; i < std::min(WaitsOnWire::kMost, waits.waited_for.size()); ++i) {
    const RankWaits::For& from = waits.waited_for[i];
    WaitsOnWire::For& to = told.waited_for[i];
    to = {from.seconds,
          from.place_seconds,
          from.longest_seconds,
          from.waits,
          from.place_waits,
          from.longest_call,
          from.rank,
          static_cast<uint32_t>(from.collective),
          {}};
    std::memcpy(to.site.data(), from.site.data(), std::min(from.site.size(), to.site.size()));
  }
  return told;
}

RankWaits from_wire(const WaitsOnWire& told) {
  RankWaits waits{told.rank, told.seconds, told.in_calls, told.is_sampled != 0, told.waited, {}};
  for (const WaitsOnWire::For& of : told.waited_for) {
    if (of.rank < 0) break;
    const bool is_known = of.collective < kCollectiveTraits.size();
    waits.waited_for.push_back({of.rank, of.seconds, of.waits,
                                is_known ? static_cast<Collective>(of.collective) : Collective::AllReduce,
                                std::string(of.site.data(), ::strnlen(of.site.data(), of.site.size())),
                                of.place_seconds, of.place_waits, of.longest_seconds, of.longest_call});
  }
  return waits;
}

}  // namespace ccom
