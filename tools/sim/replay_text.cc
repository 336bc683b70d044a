// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/replay_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ccom::simtool {
namespace {

std::string seconds(double ns) { return printed("%.6g s", ns / 1e9); }

double between_ns(const ReplayReport& report) {
  return std::max(0.0, report.replayed.whole_ns - report.replayed.in_calls_ns);
}
double straggler_cost_ns(const ReplayReport& report) {
  return std::max(0.0, report.replayed.whole_ns - report.without_stragglers.whole_ns);
}

std::string kind_row(const ReplayedKind& kind) {
  const bool is_recorded = kind.recorded_ns > 0;
  const std::string recorded = is_recorded ? printed("%.1f", kind.recorded_ns / 1e3) : "-";
  const std::string ratio = is_recorded ? printed("%.2f", kind.predicted_ns / kind.recorded_ns) : "-";
  return printed("%-14s %12zu %8zu %14s %14.1f %8s  %s\n", std::string(name_of(kind.collective)).c_str(), kind.bytes,
                 kind.calls, recorded.c_str(), kind.predicted_ns / 1e3, ratio.c_str(), kind.algorithm.c_str());
}

// Of calls that were recorded.
std::string accuracy(const ReplayReport& report) {
  const Replayed& replayed = report.replayed;
  std::string text = printed("  predicted / recorded: %.2f of the median call, %.2f of the time in calls\n",
                             replayed.median_ratio, replayed.calls_ratio());
  if (replayed.disturbed_calls > 0) {
    text += printed(
        "    without what %zu calls took beyond the median of their kind, of which they took over %g times as long: "
        "%s\n",
        replayed.disturbed_calls, kDisturbed, seconds(replayed.disturbed_ns).c_str());
  }
  if (!report.fit) return text;
  return text + printed(
                    "  costs of shared memory fitted to %zu kinds of calls; calls that are not among those are "
                    "within a factor of %.2f (median)\n",
                    report.fit->kinds, report.fit->error_elsewhere);
}

}  // namespace

double ReplayReport::least_exposed_ns() const {
  return std::max(0.0, replayed.in_calls_ns - replayed.waiting_ns - between_ns(*this));
}

std::string to_text(const ReplayReport& report) {
  const Replayed& replayed = report.replayed;
  std::string text = std::to_string(report.replay.calls.size()) + " calls of " +
                     std::to_string(report.replay.processes) + " ranks on " + report.what;
  if (report.replay.left_out > 0)
    text += "; " + std::to_string(report.replay.left_out) + " left out, which not all ranks recorded to their end";
  text += "\n  whole            " + seconds(replayed.whole_ns) + ", recorded " + seconds(report.replay.recorded_ns);
  text += "\n  in calls         " + seconds(replayed.in_calls_ns) +
          " of a rank on average, of that waiting for others " + seconds(replayed.waiting_ns);
  text += "\n  between calls    " + seconds(between_ns(report));
  text += "\n  exposed          " + seconds(report.exposed_ns()) + "; " + seconds(report.least_exposed_ns()) +
          " if all of what is between calls ran beside them";
  text += "\n  stragglers cost  " + seconds(straggler_cost_ns(report)) + "\n";
  if (replayed.median_ratio > 0) text += accuracy(report);
  text += "collective            bytes    calls    recorded us   predicted us    ratio  algorithm\n";
  for (const ReplayedKind& kind : replayed.kinds) text += kind_row(kind);
  return text;
}

std::string to_json(const ReplayReport& report) {
  using nlohmann::ordered_json;
  ordered_json kinds = ordered_json::array();
  for (const ReplayedKind& kind : report.replayed.kinds)
    kinds.push_back({{"collective", name_of(kind.collective)},
                     {"bytes", kind.bytes},
                     {"calls", kind.calls},
                     {"algorithm", kind.algorithm},
                     {"recorded_us", kind.recorded_ns / 1e3},
                     {"predicted_us", kind.predicted_ns / 1e3}});
  ordered_json object{{"machine", report.what},
                      {"ranks", report.replay.processes},
                      {"calls", report.replay.calls.size()},
                      {"left_out", report.replay.left_out},
                      {"recorded_s", report.replay.recorded_ns / 1e9},
                      {"predicted_s", report.replayed.whole_ns / 1e9},
                      {"in_calls_s", report.replayed.in_calls_ns / 1e9},
                      {"waiting_s", report.replayed.waiting_ns / 1e9},
                      {"between_calls_s", between_ns(report) / 1e9},
                      {"exposed_s", report.exposed_ns() / 1e9},
                      {"least_exposed_s", report.least_exposed_ns() / 1e9},
                      {"stragglers_cost_s", straggler_cost_ns(report) / 1e9},
                      {"median_ratio", report.replayed.median_ratio},
                      {"calls_s", report.replayed.calls_ns / 1e9},
                      {"recorded_calls_s", report.replayed.recorded_calls_ns / 1e9},
                      {"disturbed_s", report.replayed.disturbed_ns / 1e9},
                      {"disturbed_calls", report.replayed.disturbed_calls},
                      {"calls_ratio", report.replayed.calls_ratio()}};
  if (report.fit) object["fit"] = {{"kinds", report.fit->kinds}, {"error_elsewhere", report.fit->error_elsewhere}};
  object["kinds"] = std::move(kinds);
  return object.dump() + "\n";
}

}  // namespace ccom::simtool
