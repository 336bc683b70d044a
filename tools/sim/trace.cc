// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/trace.h"

#include <nlohmann/json.hpp>

namespace ccom::simtool {
namespace {

using ccom::name_of;
using nlohmann::ordered_json;

std::string_view name_of(StepKind kind) {
  switch (kind) {
    case StepKind::Send: return "send to ";
    case StepKind::Receive: return "receive from ";
    case StepKind::ReceiveReduce: return "receive and reduce from ";
    case StepKind::Copy: return "copy";
    case StepKind::Permute: return "permute";
    case StepKind::Reduce: return "reduce";
  }
  return "";
}

double microseconds(SimTime time) { return static_cast<double>(time) / 1e6; }

}  // namespace

std::string chrome_trace(const Topology& topology, const Program& program, const SimReport& report) {
  ordered_json events = ordered_json::array();
  for (const TraceStep& step : report.trace) {
    const int host = topology.ranks[static_cast<size_t>(step.rank)].host;
    std::string name(step.is_node_stage ? name_of(program.stages[step.stage].collective) : name_of(step.what.kind));
    const bool is_transfer = !step.is_node_stage && step.what.is_transfer();
    if (is_transfer) name += std::to_string(step.what.peer);
    events.push_back({{"name", name},
                      {"cat", step.is_node_stage ? "host"
                              : is_transfer      ? "transfer"
                                                 : "local"},
                      {"ph", "X"},
                      {"pid", host},
                      {"tid", step.rank},
                      {"ts", microseconds(step.start)},
                      {"dur", microseconds(step.end - step.start)},
                      {"args",
                       {{"stage", step.stage},
                        {"tile", step.tile},
                        {"step", step.step},
                        {"channel", step.what.channel},
                        {"bytes", step.bytes}}}});
  }
  return ordered_json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

}  // namespace ccom::simtool
