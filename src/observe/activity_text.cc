// SPDX-License-Identifier: Apache-2.0
//
// Activities as sentences.
#include <algorithm>
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

std::string in_seconds(double seconds) { return printed("%.1f s", seconds); }

// Ranks with equal texts.
struct Group {
  std::vector<Rank> ranks;
  RankActivity of;  // one of them: with the longest times, and the host and whom it waits for only if all agree
};

std::string sentence(const Group& group) {
  const std::string host = group.of.host.empty() ? "" : " (host " + group.of.host + ")";
  return name_ranks(group.ranks) + host + (group.ranks.size() == 1 ? " is " : " are ") + full_text_of(group.of);
}

std::vector<Group> group(const std::vector<RankActivity>& activities) {
  std::map<std::pair<std::string, bool>, Group> groups;
  for (const RankActivity& activity : activities) {
    const bool silent = is_silent(activity);
    const std::string text = text_of(activity);
    Group& found = groups[{text, silent}];
    if (found.ranks.empty()) found.of = activity;
    if (found.of.host != activity.host) found.of.host.clear();
    if (found.of.waits_for != activity.waits_for) found.of.waits_for = -1;
    found.ranks.push_back(activity.rank);
    found.of.seconds = std::max(found.of.seconds, activity.seconds);
    found.of.silent = std::max(found.of.silent, activity.silent);
  }
  std::vector<Group> all;
  all.reserve(groups.size());
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

bool is_waiting(const RankActivity& activity) {
  const bool is_inside =
      activity.state == State::InCall || activity.state == State::Transfers || activity.state == State::Message;
  return is_inside && activity.waits_for >= 0;
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
    case State::Message:
      return at(activity.site) + "in " + activity.message +
             (activity.messages > 1 ? ", one of " + std::to_string(activity.messages) + " messages" : "");
    case State::Left: return "gone after " + (activity.call.number == 0 ? "no call" : name_of(activity.call));
    case State::Dead: return "dead (" + last_call(activity) + ")";
    case State::Outside: break;
  }
  const std::string outside(kOutside);
  if (activity.place.empty()) return outside + " (" + last_call(activity) + ")";
  if (activity.place.starts_with("in ")) return activity.place + ", " + outside + " of this communicator";
  return "at " + activity.place + ", " + outside;
}

std::string full_text_of(const RankActivity& activity) {
  std::string text = text_of(activity);
  const std::string since = activity.seconds > 0 ? ", for " + in_seconds(activity.seconds) + " now" : "";
  if (activity.state == State::Outside) {
    const size_t call = text.find(kOutside), last = text.find(" (", call);
    text.insert(std::min(last, text.size()), since);
  }
  if (activity.state == State::Message) {
    text += since;
  } else if (is_waiting(activity)) {
    text += ", waiting for rank " + std::to_string(activity.waits_for);
  }
  if (is_silent(activity)) text += ", and the process has not run for " + in_seconds(activity.silent);
  return text;
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
