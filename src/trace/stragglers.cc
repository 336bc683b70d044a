// SPDX-License-Identifier: Apache-2.0
#include "trace/stragglers.h"

#include <algorithm>

namespace ccom {
namespace {

struct Arrival {
  Rank rank = -1;
  int64_t at_ns = 0;
  int64_t error_ns = 0;
  const std::string* site = nullptr;
};

// In its last call, which is not over or has failed.
bool waits(const RecordedRank& recorded) {
  const RecordedCall* const last = recorded.calls.empty() ? nullptr : recorded.calls.back();
  return last != nullptr && (!last->ended_ns || last->code != Code::Ok) && last->waited_for >= 0;
}

// When the last recorded call of the group was over; that of the job, if one is not.
int64_t end_of(const RecordedJob& job, const RecordedGroup& group) {
  int64_t end = INT64_MIN;
  for (const auto& [rank, recorded] : group.ranks) {
    if (recorded.calls.empty()) continue;
    const std::optional<int64_t> ended = recorded.calls.back()->ended_ns;
    end = std::max(end, ended ? job.time(recorded.file, *ended) : job.last_ns);
  }
  return end;
}

// Empty unless all ranks have a record of it, or have not come to the last one.
std::vector<Arrival> arrivals(const RecordedJob& job, const RecordedGroup& group, uint64_t number, bool& is_open) {
  static const std::string kUnknown;
  std::vector<Arrival> found;
  std::vector<Arrival> absent;
  for (const auto& [rank, recorded] : group.ranks) {
    const int64_t error = job.clocks[recorded.file].error_ns();
    if (const RecordedCall* const call = group.find(rank, number)) {
      found.push_back(
          {rank, job.time(recorded.file, call->begun_ns), error, &job.files[recorded.file].texts[call->site]});
    } else if (recorded.calls.empty() || recorded.calls.back()->call.number < number) {
      absent.push_back({rank, job.last_ns, error, &kUnknown});
    } else {
      return {};
    }
  }
  is_open = !absent.empty();
  // Of several, who waits, or waited in vain, in an earlier call for another rank is not to blame.
  if (absent.size() > 1) std::erase_if(absent, [&](const Arrival& rank) { return waits(group.ranks.at(rank.rank)); });
  if (absent.size() > 1 || found.empty()) return {};  // none of several alone is it
  found.insert(found.end(), absent.begin(), absent.end());
  std::ranges::stable_sort(found, {}, &Arrival::at_ns);
  return found;
}

void add_place(Straggler& straggler, const std::string& site, int64_t late_ns) {
  const auto known = std::ranges::find(straggler.places, site, &Straggler::Place::site);
  Straggler::Place& place = known == straggler.places.end() ? straggler.places.emplace_back() : *known;
  place.site = site;
  ++place.calls;
  place.late_ns += late_ns;
}

}  // namespace

std::vector<Straggler> find_stragglers(const RecordedJob& job, const RecordedGroup& group) {
  std::map<Rank, Straggler> by_rank;
  const int64_t end = end_of(job, group);
  int64_t begin = INT64_MAX;
  for (const uint64_t number : group.numbers()) {
    bool is_open = false;
    const std::vector<Arrival> all = arrivals(job, group, number, is_open);
    if (all.empty()) continue;
    begin = std::min(begin, all.front().at_ns);
    if (all.size() < 2) continue;
    const Arrival &late = all.back(), &before = all[all.size() - 2];
    const int64_t late_ns = late.at_ns - before.at_ns;
    if (late_ns <= late.error_ns + before.error_ns && !is_open) continue;
    Straggler& straggler = by_rank[late.rank];
    straggler.rank = late.rank;
    ++straggler.calls;
    straggler.late_ns += late_ns;
    for (const Arrival& other : all) straggler.waited_ns += late.at_ns - other.at_ns;
    straggler.has_not_come |= is_open;
    if (!is_open) add_place(straggler, *late.site, late_ns);
  }
  std::vector<Straggler> found;
  for (auto& [rank, straggler] : by_rank) {
    straggler.communicator = group.number;
    straggler.share = static_cast<double>(straggler.late_ns) / static_cast<double>(std::max<int64_t>(end - begin, 1));
    std::ranges::sort(straggler.places, std::greater<>(), &Straggler::Place::late_ns);
    found.push_back(std::move(straggler));
  }
  std::ranges::sort(found, std::greater<>(), &Straggler::share);
  return found;
}

}  // namespace ccom
