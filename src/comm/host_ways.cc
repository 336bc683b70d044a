// SPDX-License-Identifier: Apache-2.0
#include "comm/host_ways.h"

#include "base/call.h"
#include "base/json_text.h"
#include "base/text.h"
#include "comm/learning.h"
#include "plan/print.h"
#include "topology/topology.h"

namespace ccom {
namespace {

std::string microseconds(double ns) { return printed("%.3f", ns / 1e3); }

// Its members, each after a comma.
std::string costs_json(const MeasuredCosts& costs) {
  const std::string object = to_json(costs);
  return object == "{}" ? "" : "," + object.substr(1, object.size() - 2);
}

std::string found_json(const CallChoices::Found& found) {
  const CallKind kind = parts_of(found.kind.words);
  const OnlineChoice& choice = found.choice;
  std::string text = "{";
  if (reduces(kind.collective)) text += "\"op\":" + json_text(name_of(kind.op)) + ",";
  text += "\"buffers\":" + json_text(buffers_text(found.buffers)) + ",\"calls\":" + std::to_string(choice.asked()) +
          ",\"in_use\":" + std::to_string(choice.best()) + ",\"chosen_at\":" + std::to_string(choice.chosen_at()) +
          ",\"settled\":" + (choice.is_settled() ? "true" : "false") +
          ",\"lost_calls\":" + printed("%.1f", choice.lost_calls()) + ",\"median_us\":[";
  for (size_t way = 0; way < found.ways.size(); ++way) {
    const double ns = choice.median_ns(way);
    text += (way == 0 ? "" : ",") + (ns > 0 ? microseconds(ns) : "null");
  }
  return text + "]}";
}

// Of one length: tiles but the last are equally long.
std::string stage_json(size_t index, const PreparedTask& task, size_t unit_bytes, const Request& request, bool is_v,
                       const ShmCollectives& host) {
  const Collective collective = task.task().collective;
  const CallChoices& choices = host.choices();
  std::string text = "{\"stage\":" + std::to_string(index) + ",\"collective\":" + json_text(name_of(collective)) +
                     ",\"unit_bytes\":" + std::to_string(unit_bytes) + ",\"ways\":[";
  for (const NodeChoice& way : task.ways()) text += (&way == task.ways().data() ? "" : ",") + json_text(to_text(way));
  const uint64_t words = kind_of(request.collective, request.type, request.op, false, request.root, 0, is_v);
  const CallChoices::Kind asked = CallChoices::kind_of_calls(words, unit_bytes, task.most_given(), collective);
  const size_t first = choices.expected(asked, task.task(), task.ways()).first;
  const bool is_small = !is_v && task.is_plain() && host.is_small(collective, unit_bytes);
  text += "],\"begins_with\":" + std::to_string(first) + ",\"small\":" + (is_small ? "true" : "false") + ",\"found\":[";
  bool is_first = true;
  for (const CallChoices::Found& found : choices.found()) {
    const CallKind kind = parts_of(found.kind.words);
    if (found.kind.collective != collective || found.kind.bytes != asked.bytes || kind.is_v != is_v ||
        found.kind.given != task.most_given() || kind.collective != request.collective || kind.type != request.type ||
        kind.root != request.root || found.ways != task.ways())
      continue;
    text += (is_first ? "" : ",") + found_json(found);
    is_first = false;
  }
  return text + "]}";
}

}  // namespace

std::string host_ways_json(const BoundProgram& program, const Request& request, bool is_v, const ShmCollectives& host,
                           const MeasuredCosts& costs) {
  std::string stages;
  for (size_t index = 0; index < program.program().stages.size(); ++index) {
    const CompiledStage& compiled = program.compiled->stages[index];
    if (compiled.kind != CompiledStage::Kind::Host) continue;
    for (size_t kind = 0; kind < program.kinds.size(); ++kind) {
      const BoundStage* const stage = &program.kinds[kind][index];
      if (kind + 1 < program.kinds.size() && stage->host.count == program.kinds[kind + 1][index].host.count) continue;
      stages += (stages.empty() ? "" : ",") +
                stage_json(index, *compiled.task, stage->host.count * size_of(request.type), request, is_v, host);
    }
  }
  return stages.empty() ? "" : costs_json(costs) + ",\"host_stages\":[" + stages + "]";
}

}  // namespace ccom
