// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "tools/trace/outputs.h"
#include "tools/trace/words.h"

namespace ccom::tracetool {
namespace {

using Part = ComparedCall::Part;
using State = ComparedCall::State;

std::string plural(size_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

std::string call_text(CallDescriptor call) {
  std::string text = text_of(call);
  return text.substr(0, text.rfind(" (call "));
}

std::string at(const std::string& site) {
  const std::string place = place_text(site);
  return place.empty() ? "" : " at " + place;
}

std::string spread_text(const Part& part) {
  if (part.ranks.size() < 2) return "";
  return ", begun within " + duration_text(part.last_begun_ns - part.first_begun_ns);
}

std::string how_it_went(const Part& part) {
  switch (part.state) {
    case State::Ended: return "took " + duration_text(part.longest_ns) + spread_text(part);
    case State::Failed:
      return std::string("ended with \"") + describe(part.code) + "\" after " + duration_text(part.longest_ns);
    case State::Inside:
      return "in it for " + duration_text(part.longest_ns) +
             (part.waits_for < 0 ? "" : ", waits for rank " + std::to_string(part.waits_for));
    case State::NotMade:
    case State::Left: {
      const std::string what = part.state == State::Left
                                   ? "has left"
                                   : "has not called it: in no call for " + duration_text(part.longest_ns);
      if (part.call.number == 0) return what + ", none before";
      return what + ", last in #" + std::to_string(part.call.number) + at(part.site);
    }
    case State::NotRecorded: return "not recorded";
  }
  return "";
}

bool is_call(State state) { return state == State::Ended || state == State::Failed || state == State::Inside; }

// What all ranks have in common stands in the first line, if they have.
std::string lines_of(const ComparedCall& compared, bool is_first_difference) {
  const auto made = std::ranges::find_if(compared.parts, [](const Part& part) { return is_call(part.state); });
  const bool is_one = std::ranges::all_of(compared.parts, [&](const Part& part) {
    return !is_call(part.state) || (part.call == made->call && part.site == made->site);
  });
  std::string text = std::string(is_first_difference ? "> #" : "  #") + std::to_string(compared.number);
  if (is_one && made != compared.parts.end()) text += "  " + call_text(made->call) + at(made->site);
  if (is_first_difference) text += "   the first in which ranks differ";
  for (const Part& part : compared.parts) {
    text += "\n      " + name_ranks({part.ranks.begin(), part.ranks.end()}) + ": ";
    if (!is_one && is_call(part.state)) text += call_text(part.call) + at(part.site) + ", ";
    text += how_it_went(part);
  }
  return text + "\n";
}

}  // namespace

std::string job_text(const RecordedJob& job) {
  std::set<std::string> hosts;
  uint64_t torn = 0;
  int64_t begin = INT64_MAX;
  for (size_t i = 0; i < job.files.size(); ++i) {
    hosts.insert(job.files[i].host);
    torn += job.files[i].torn;
    if (!job.files[i].calls.empty()) begin = std::min(begin, job.time(i, job.files[i].calls.front().begun_ns));
  }
  const RecordedGroup& widest = job.groups.front();
  std::string text = "job of " + plural(static_cast<size_t>(widest.nranks), "rank") + ", " +
                     plural(job.groups.size(), "communicator") + ", " + plural(job.files.size(), "recording") + " of " +
                     plural(hosts.size(), "host") + ", program " + job.files.front().program + "\n";
  if (begin != INT64_MAX)
    text += "calls from " + date_text(realtime(job, begin)) + " on, for " + duration_text(job.last_ns - begin) + "\n";
  if (torn > 0) text += plural(torn, "record") + " that processes were writing when they ended: left out\n";
  std::set<std::string> told{job.files.front().host};
  for (size_t i = 0; i < job.files.size(); ++i) {
    const ClockOffset& clock = job.clocks[i];
    if (!told.insert(job.files[i].host).second || clock.known.front() == ClockOffset::Known()) continue;
    text += "clock of " + job.files[i].host + " against that of " + job.files.front().host + ": " +
            (clock.is_measured ? "known to " + duration_text(clock.error_ns()) + ", by what both did together\n"
                               : "by their calendars, however wrong these are\n");
  }
  return text;
}

std::string calls_text(const RecordedJob&, const RecordedGroup& group, const std::vector<ComparedCall>& calls) {
  std::string text = group_name(group) + ": " + plural(static_cast<size_t>(group.nranks), "rank") + ", " +
                     std::to_string(group.last_number()) + " calls\n";
  const auto first = first_difference(group);
  for (const ComparedCall& call : calls) text += lines_of(call, first && *first == call.number);
  return text;
}

std::string stragglers_text(const RecordedGroup& group, const std::vector<Straggler>& stragglers, size_t most) {
  std::string text;
  for (const Straggler& straggler : stragglers) {
    if (most-- == 0) break;
    char share[32];
    std::snprintf(share, sizeof share, "%.1f %%", straggler.share * 100);
    text += "  rank " + std::to_string(straggler.rank) + " made the others wait " + share +
            " of the time: " + duration_text(straggler.late_ns) + " in " + plural(straggler.calls, "call");
    if (!straggler.places.empty() && !straggler.places[0].site.empty()) {
      const Straggler::Place& worst = straggler.places[0];
      text += ", " + duration_text(worst.late_ns) + " of them before " + plural(worst.calls, "call") + at(worst.site);
    }
    text += straggler.has_not_come ? "; it has not come to the last one\n" : "\n";
  }
  return text.empty() ? "" : "stragglers of " + group_name(group) + "\n" + text;
}

}  // namespace ccom::tracetool
