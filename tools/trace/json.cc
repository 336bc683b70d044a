// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "tools/trace/outputs.h"
#include "tools/trace/words.h"

namespace ccom::tracetool {
namespace {

using nlohmann::ordered_json;
using State = ComparedCall::State;

const char* word_of(State state) {
  switch (state) {
    case State::Ended: return "ended";
    case State::Failed: return "failed";
    case State::Inside: return "inside";
    case State::NotMade: return "not_made";
    case State::Left: return "left";
    case State::NotRecorded: return "not_recorded";
  }
  return "";
}

ordered_json parts_json(CallDescriptor call) {
  const CallKind kind = parts_of(call.kind);
  return {{"number", call.number},
          {"collective", call_name(kind.collective, kind.is_v)},
          {"type", ccom::name_of(kind.type)},
          {"operator", ccom::name_of(kind.op)},
          {"root", kind.root},
          {"count", call.count}};
}

ordered_json to_json(const ComparedCall::Part::Instead& instead) {
  ordered_json object{{"communicator", instead.communicator},
                      {"state", word_of(instead.state)},
                      {"call", parts_json(instead.call)},
                      {"at", place_text(instead.site)}};
  if (instead.waits_for >= 0) object["waits_for"] = instead.waits_for;
  if (instead.code != Code::Ok) object["error"] = describe(instead.code);
  return object;
}

ordered_json to_json(const ComparedCall& compared) {
  ordered_json parts = ordered_json::array();
  for (const ComparedCall::Part& part : compared.parts) {
    ordered_json object{{"ranks", part.ranks}, {"state", word_of(part.state)}, {"call", parts_json(part.call)}};
    object["at"] = place_text(part.site);
    if (part.waits_for >= 0) object["waits_for"] = part.waits_for;
    if (part.code != Code::Ok) object["error"] = describe(part.code);
    object["first_begun_ns"] = part.first_begun_ns;
    object["last_begun_ns"] = part.last_begun_ns;
    object["longest_ns"] = part.longest_ns;
    if (part.is_silent) object["silent_ns"] = part.silent_ns;
    if (part.instead) object["instead"] = to_json(*part.instead);
    parts.push_back(std::move(object));
  }
  return {{"number", compared.number}, {"differs", compared.is_different}, {"parts", std::move(parts)}};
}

ordered_json to_json(const Straggler& straggler) {
  ordered_json places = ordered_json::array();
  for (const Straggler::Place& place : straggler.places)
    places.push_back({{"at", place_text(place.site)}, {"calls", place.calls}, {"late_ns", place.late_ns}});
  return {{"rank", straggler.rank},           {"calls", straggler.calls}, {"late_ns", straggler.late_ns},
          {"waited_ns", straggler.waited_ns}, {"share", straggler.share}, {"has_not_come", straggler.has_not_come},
          {"places", std::move(places)}};
}

ordered_json call_json(const RecordedJob& job, size_t file, const RecordedCall& call) {
  ordered_json object = parts_json(call.call);
  object["begun_ns"] = job.time(file, call.begun_ns);
  object["ended_ns"] = call.ended_ns ? ordered_json(job.time(file, *call.ended_ns)) : ordered_json();
  object["waited_ns"] = call.waited_ns;
  object["waited_for"] = call.waited_for;
  object["algorithm"] = job.files[file].texts[call.algorithm];
  object["at"] = place_text(job.files[file].texts[call.site]);
  if (call.code != Code::Ok) object["error"] = describe(call.code);
  return object;
}

ordered_json group_json(const RecordedJob& job, const RecordedGroup& group, size_t count, bool with_calls) {
  const auto first = first_difference(group);
  ordered_json object{
      {"name", group_name(group)},    {"number", group.number},
      {"parent", group.parent},       {"ranks", group.nranks},
      {"calls", group.last_number()}, {"first_difference", first ? ordered_json(*first) : ordered_json()}};
  if (!group.origins.empty()) object["origins"] = group.origins;
  object["last_calls"] = ordered_json::array();
  for (const ComparedCall& call : last_calls(job, group, count)) object["last_calls"].push_back(to_json(call));
  object["stragglers"] = ordered_json::array();
  for (const Straggler& straggler : find_stragglers(job, group)) object["stragglers"].push_back(to_json(straggler));
  if (!with_calls) return object;
  for (const auto& [rank, recorded] : group.ranks) {
    ordered_json calls = ordered_json::array();
    for (const RecordedCall* call : recorded.calls) calls.push_back(call_json(job, recorded.file, *call));
    for (const RecordedCall* call : recorded.transfers) calls.push_back(call_json(job, recorded.file, *call));
    object["calls_by_rank"][std::to_string(rank)] = std::move(calls);
  }
  return object;
}

}  // namespace

std::string to_json(const RecordedJob& job, size_t count, bool with_calls) {
  ordered_json files = ordered_json::array();
  for (size_t i = 0; i < job.files.size(); ++i) {
    const Recording& file = job.files[i];
    files.push_back({{"rank", job.rank_of_file(i)},
                     {"path", file.path},
                     {"host", file.host},
                     {"pid", file.pid},
                     {"program", file.program},
                     {"calls", file.calls.size()},
                     {"torn", file.torn},
                     {"clock_offset_ns", job.clocks[i].known.back().offset_ns},
                     {"clock_error_ns", job.clocks[i].error_ns()},
                     {"clock_is_measured", job.clocks[i].is_measured}});
  }
  ordered_json groups = ordered_json::array();
  for (const RecordedGroup& group : job.groups) groups.push_back(group_json(job, group, count, with_calls));
  const ordered_json object{{"realtime_offset_ns", job.files.front().realtime_offset_ns},
                            {"last_ns", job.last_ns},
                            {"recordings", std::move(files)},
                            {"communicators", std::move(groups)}};
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ccom::tracetool
