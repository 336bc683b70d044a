// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
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

// "allreduce #12"
std::string name_of(const CallDescriptor& call) {
  const CallKind kind = parts_of(call.kind);
  return call_name(kind.collective, kind.is_v) + " #" + std::to_string(call.number);
}

std::string at(const std::string& site) {
  const std::string place = place_text(site);
  return place.empty() ? "" : " at " + place;
}

std::string spread_text(const Part& part) {
  if (part.ranks.size() < 2) return "";
  return ", begun within " + duration_text(part.last_begun_ns - part.first_begun_ns);
}

std::string wait_text(State state, Rank waits_for) {
  if (waits_for < 0) return "";
  return (state == State::Failed ? ", waited for rank " : ", waits for rank ") + std::to_string(waits_for);
}

std::string failure_text(Code code, int64_t took_ns) {
  return std::string("ended with \"") + describe(code) + "\" after " + duration_text(took_ns);
}

// Of a rank that has not made a call: the one that it is in, or was in until that failed.
std::string instead_text(const Part& part, uint64_t communicator) {
  const Part::Instead& instead = *part.instead;
  const bool is_transfer = instead.call.number == 0, is_elsewhere = instead.communicator != communicator;
  std::string text = is_transfer ? "sends and receives" : "#" + std::to_string(instead.call.number);
  if (is_elsewhere && !is_transfer) text = name_of(instead.call);
  if (is_elsewhere) text += " of " + communicator_name(instead.name, instead.communicator);
  text += at(instead.site);
  text = instead.state == State::Failed ? "was in " + text + ", which " + failure_text(instead.code, part.longest_ns)
                                        : "in " + text + " for " + duration_text(part.longest_ns);
  return text + wait_text(instead.state, instead.waits_for);
}

std::string how_it_went(const Part& part, uint64_t communicator) {
  switch (part.state) {
    case State::Ended: return "took " + duration_text(part.longest_ns) + spread_text(part);
    case State::Failed: return failure_text(part.code, part.longest_ns) + wait_text(part.state, part.waits_for);
    case State::Inside: return "in it for " + duration_text(part.longest_ns) + wait_text(part.state, part.waits_for);
    case State::NotMade:
    case State::Left: {
      const std::string begin = part.state == State::Left ? "has left" : "has not called it";
      if (part.instead) return begin + ": " + instead_text(part, communicator);
      const std::string what =
          part.state == State::Left ? begin : begin + ": in no call for " + duration_text(part.longest_ns);
      if (part.call.number == 0) return what + ", none before";
      return what + ", last in #" + std::to_string(part.call.number) + at(part.site);
    }
    case State::NotRecorded: return "not recorded";
  }
  return "";
}

bool is_call(State state) { return state == State::Ended || state == State::Failed || state == State::Inside; }

// What all ranks have in common stands in the first line, if they have.
std::string lines_of(const ComparedCall& compared, uint64_t communicator, bool is_first_difference) {
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
    text += how_it_went(part, communicator);
    if (part.is_silent) text += "; its process has not run for " + duration_text(part.silent_ns);
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
  for (const ComparedCall& call : calls) text += lines_of(call, group.number, first && *first == call.number);
  return text;
}

std::string stragglers_text(const RecordedGroup& group, const std::vector<Straggler>& stragglers, size_t most) {
  std::string text;
  for (const Straggler& straggler : stragglers) {
    if (most-- == 0) break;
    text += printed("  rank %d made the others wait %.1f %% of the time: ", straggler.rank, straggler.share * 100) +
            duration_text(straggler.late_ns) + " in " + plural(straggler.calls, "call");
    if (!straggler.places.empty() && !straggler.places[0].site.empty()) {
      const Straggler::Place& worst = straggler.places[0];
      text += ", " + duration_text(worst.late_ns) + " of them before " + plural(worst.calls, "call") + at(worst.site);
    }
    text += straggler.has_not_come ? "; it has not come to the last one\n" : "\n";
  }
  return text.empty() ? "" : "stragglers of " + group_name(group) + "\n" + text;
}

}  // namespace ccom::tracetool
