// SPDX-License-Identifier: Apache-2.0
//
// Format: "Trace Event Format", Google. ts and dur are microseconds; "X" is a slice, "M" names processes and threads.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/trace/outputs.h"
#include "tools/trace/words.h"

namespace ccom::tracetool {
namespace {

using nlohmann::ordered_json;

class Events {
 public:
  explicit Events(std::ostream& out) : out_(out) { out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":["; }
  ~Events() { out_ << "\n]}\n"; }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  void add(const ordered_json& event) {
    out_ << (is_first_ ? "\n" : ",\n") << event.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    is_first_ = false;
  }

 private:
  std::ostream& out_;
  bool is_first_ = true;
};

ordered_json naming(const char* what, size_t process, size_t thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

ordered_json slice(const RecordedJob& job, size_t file, const RecordedCall& call, int64_t origin_ns) {
  const Recording& recording = job.files[file];
  const CallKind kind = parts_of(call.call.kind);
  const int64_t begun = job.time(file, call.begun_ns);
  const int64_t ended = call.ended_ns ? job.time(file, *call.ended_ns) : std::max(job.last_ns, begun);
  std::string name = call_name(kind.collective, kind.is_v);
  if (call.call.number != 0) name += " #" + std::to_string(call.call.number);
  ordered_json arguments{{"call", text_of(call.call)}, {"algorithm", recording.texts[call.algorithm]}};
  arguments["at"] = place_text(recording.texts[call.site]);
  arguments["waited_us"] = static_cast<double>(call.waited_ns) / 1e3;
  if (call.waited_for >= 0) arguments["waited_for"] = call.waited_for;
  if (!call.ended_ns) arguments["not_over"] = true;
  if (call.code != Code::Ok) arguments["error"] = describe(call.code);
  return {{"name", name + (call.ended_ns ? "" : " (not over)")},
          {"cat", call.call.number == 0 ? "transfer" : "collective"},
          {"ph", "X"},
          {"pid", file},
          {"tid", call.communicator + 1},
          {"ts", static_cast<double>(begun - origin_ns) / 1e3},
          {"dur", static_cast<double>(ended - begun) / 1e3},
          {"args", std::move(arguments)}};
}

std::string thread_name(const RecordedCommunicator& communicator) {
  RecordedGroup group;
  group.number = communicator.number;
  group.name = communicator.name;
  return group_name(group) + ", rank " + std::to_string(communicator.rank) + " of " +
         std::to_string(communicator.nranks);
}

}  // namespace

void write_perfetto(const RecordedJob& job, std::ostream& out) {
  int64_t origin = INT64_MAX;
  for (size_t i = 0; i < job.files.size(); ++i)
    if (!job.files[i].calls.empty()) origin = std::min(origin, job.time(i, job.files[i].calls.front().begun_ns));
  Events events(out);
  for (size_t i = 0; i < job.files.size(); ++i) {
    const Recording& file = job.files[i];
    events.add(
        naming("process_name", i, 0,
               "rank " + std::to_string(job.rank_of_file(i)) + ", " + file.host + " " + std::to_string(file.pid)));
    for (size_t c = 0; c < file.communicators.size(); ++c)
      events.add(naming("thread_name", i, c + 1, thread_name(file.communicators[c])));
    for (const RecordedCall& call : file.calls) events.add(slice(job, i, call, origin));
  }
}

}  // namespace ccom::tracetool
