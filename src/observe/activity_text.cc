// SPDX-License-Identifier: Apache-2.0
//
// Activities as sentences.
#include <algorithm>
#include <cstdio>
#include <map>

#include "base/collective.h"
#include "base/text.h"
#include "observe/rank_activity.h"

namespace ccom {
namespace {

using State = RankActivity::State;

constexpr std::string_view kOutside = "not in a call";

std::string at(const std::string& place) { return place.empty() ? "" : "at " + place + " "; }

std::string last_call(const RankActivity& activity) {
  if (activity.call.number == 0) return "no call before";
  return "the last one: " + name_of(activity.call) + (activity.site.empty() ? "" : " at " + activity.site);
}

std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

// Ranks with equal texts, and what differs between them.
struct Group {
  std::string text;
  std::vector<Rank> ranks;
  double seconds = 0, silent = 0;  // the longest
  Rank waits_for = -1;             // of all of them
  bool is_outside = false;
  std::string host;  // of all of them
};

std::string sentence(const Group& group) {
  const std::string host = group.host.empty() ? "" : " (host " + group.host + ")";
  std::string text = name_ranks(group.ranks) + host + (group.ranks.size() == 1 ? " is " : " are ") + group.text;
  if (group.is_outside && group.seconds > 0) {
    const size_t call = text.find(kOutside), last = text.find(" (", call);
    text.insert(last == std::string::npos ? text.size() : last, " since " + in_seconds(group.seconds));
  }
  if (group.waits_for >= 0) text += ", waiting for rank " + std::to_string(group.waits_for);
  if (group.silent > 0) text += ", and the process has not run for " + in_seconds(group.silent);
  return text;
}

std::vector<Group> group(const std::vector<RankActivity>& activities) {
  std::map<std::pair<std::string, bool>, Group> groups;
  for (const RankActivity& activity : activities) {
    const bool silent = is_silent(activity);
    const std::string text = text_of(activity);
    Group& found = groups[{text, silent}];
    if (found.ranks.empty()) {
      found.waits_for = activity.waits_for;
      found.host = activity.host;
    }
    if (found.host != activity.host) found.host.clear();
    if (found.waits_for != activity.waits_for) found.waits_for = -1;
    found.text = text;
    found.ranks.push_back(activity.rank);
    found.is_outside = activity.state == State::Outside;
    found.seconds = std::max(found.seconds, activity.seconds);
    if (silent) found.silent = std::max(found.silent, activity.silent);
  }
  std::vector<Group> all;
  for (auto& [key, found] : groups) all.push_back(std::move(found));
  std::ranges::sort(all, [](const Group& a, const Group& b) {
    return std::pair(a.ranks.size(), a.ranks[0]) < std::pair(b.ranks.size(), b.ranks[0]);
  });
  return all;
}

}  // namespace

std::string name_of(const CallDescriptor& call) {
  const CallKind kind = parts_of(call.kind);
  const bool is_known = static_cast<size_t>(kind.collective) < kCollectiveTraits.size();
  return (is_known ? call_name(kind.collective, kind.is_v) : "call") + " #" + std::to_string(call.number);
}

bool is_silent(const RankActivity& activity) {
  const bool runs = activity.state != State::Left && activity.state != State::Dead && activity.state != State::Absent;
  return runs && activity.silent >= kSilentSeconds;
}

std::string text_of(const RankActivity& activity) {
  switch (activity.state) {
    case State::Absent: return "not there yet";
    case State::InCall: return at(activity.site) + "in " + name_of(activity.call);
    case State::Transfers: return at(activity.site) + "in sends and receives";
    case State::Left: return "gone after " + (activity.call.number == 0 ? "no call" : name_of(activity.call));
    case State::Dead: return "dead (" + last_call(activity) + ")";
    case State::Outside: break;
  }
  const std::string outside(kOutside);
  if (activity.place.empty()) return outside + " (" + last_call(activity) + ")";
  if (activity.place.starts_with("in ")) return activity.place + ", " + outside + " of this communicator";
  return "at " + activity.place + ", " + outside;
}

std::string describe(std::vector<RankActivity> activities, size_t most_bytes) {
  std::ranges::sort(activities, {}, &RankActivity::rank);
  std::string text;
  for (const Group& each : group(activities)) {
    const std::string next = (text.empty() ? "" : "; ") + sentence(each);
    if (text.size() + next.size() + 5 > most_bytes) return text + (text.empty() ? "" : "; ...");
    text += next;
  }
  return text;
}

}  // namespace ccom
