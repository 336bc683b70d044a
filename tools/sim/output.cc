// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/output.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text.h"

namespace ccom::simtool {
namespace {

std::vector<uint32_t> by_busy_time(const SimReport& report) {
  std::vector<uint32_t> wires(report.wires.size());
  std::iota(wires.begin(), wires.end(), 0);
  std::erase_if(wires, [&](uint32_t wire) { return report.wires[wire].messages == 0; });
  std::ranges::stable_sort(wires, std::greater<>{}, [&](uint32_t wire) { return report.wires[wire].busy_ns; });
  return wires;
}

const char* where_text(const Stage& stage) {
  switch (stage.where) {
    case Stage::Where::Host: return "host";
    case Stage::Where::Across: return "across";
    case Stage::Where::All: return "all";
  }
  return "";
}

// The scheme of a stage in hosts for ranks that cannot be reached; an algorithm of messages.
std::string how_text(const Stage& stage) {
  return stage.where == Stage::Where::Host ? std::string(name_of(stage.node.staged.scheme)) : stage.messages.name;
}

}  // namespace

std::string table_head() {
  return printed("%-14s %12s %-24s %13s %10s %10s %8s %12s %10s\n", "collective", "bytes", "algorithm", "time us",
                 "algbw", "busbw", "x bound", "expected us", "simulated");
}

std::string table_row(const Topology& topology, const Outcome& outcome) {
  const double bound = outcome.bound.time_ns();
  return printed("%-14s %12zu %-24s %13.3f %10.3f %10.3f %8s %12s %9.2fs%s\n",
                 std::string(name_of(outcome.what.collective)).c_str(), outcome.what.bytes,
                 (outcome.program.algorithm + (outcome.chosen ? " *" : "")).c_str(), outcome.report.time_ns / 1e3,
                 outcome.algbw(), outcome.busbw(topology.nranks()),
                 bound > 0 ? printed("%.2f", outcome.report.time_ns / bound).c_str() : "-",
                 outcome.expected_ns > 0 ? printed("%.3f", outcome.expected_ns / 1e3).c_str() : "-", outcome.seconds,
                 outcome.folded ? " folded" : "");
}

std::string noise_line(const Outcome& outcome) {
  const std::vector<double>& times_ns = outcome.noisy_ns;
  if (times_ns.empty()) return "";
  const double median_ns = times_ns[times_ns.size() / 2];
  return printed("  with noise, %zu runs: median %.3f us (%.2f x), worst %.3f us (%.2f x)\n", times_ns.size(),
                 median_ns / 1e3, median_ns / outcome.report.time_ns, times_ns.back() / 1e3,
                 times_ns.back() / outcome.report.time_ns);
}

std::string stage_table(const Outcome& outcome) {
  const Program& program = outcome.program;
  if (program.stages.size() < 2) return "";
  std::string text;
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const Stage& stage = program.stages[s];
    const StageUse& use = outcome.report.stages[s];
    text += printed("  stage %zu %-6s %-14s %-24s %11.3f us %5.1f%%", s, where_text(stage),
                    std::string(name_of(stage.collective)).c_str(), how_text(stage).c_str(), use.waited_ns / 1e3,
                    100 * use.waited_ns / outcome.report.time_ns);
    if (stage.where == Stage::Where::Across) text += printed(", under way %.3f us", use.open_ns / 1e3);
    text += "\n";
  }
  return text;
}

std::string wire_table(const Topology& topology, const Outcome& outcome, size_t most) {
  const Wires wires(topology);
  const SimReport& report = outcome.report;
  struct Sum {
    size_t wires = 0, used = 0;
    double bytes = 0, busy = 0;
  };
  std::map<std::string, Sum> sums;
  for (uint32_t wire = 0; wire < report.wires.size(); ++wire) {
    const WireUse& use = report.wires[wire];
    Sum& sum = sums[kind_of(wires.name(wire))];
    ++sum.wires;
    sum.used += use.messages > 0;
    sum.bytes += use.bytes;
    sum.busy += use.busy_ns;
  }
  std::string text = printed("  %-12s %9s %9s %16s %8s\n", "wires", "there", "used", "bytes", "busy");
  for (const auto& [kind, sum] : sums) {
    text += printed("  %-12s %9zu %9zu %16.0f %7.1f%%\n", kind.c_str(), sum.wires, sum.used, sum.bytes,
                    100 * sum.busy / (report.time_ns * static_cast<double>(sum.wires)));
  }
  text += printed("  %-34s %10s %16s %8s\n", "busiest", "messages", "bytes", "busy");
  const std::vector<uint32_t> order = by_busy_time(report);
  for (size_t i = 0; i < std::min(most, order.size()); ++i) {
    const WireUse& use = report.wires[order[i]];
    text += printed("  %-34s %10llu %16.0f %7.1f%%\n", wires.name(order[i]).c_str(),
                    static_cast<unsigned long long>(use.messages), use.bytes, 100 * use.busy_ns / report.time_ns);
  }
  return text;
}

std::string to_json(const Topology& topology, const Outcome& outcome) {
  const SimReport& report = outcome.report;
  const std::vector<uint32_t> order = by_busy_time(report);
  nlohmann::ordered_json object = {{"collective", name_of(outcome.what.collective)},
                                   {"bytes", outcome.what.bytes},
                                   {"ranks", topology.nranks()},
                                   {"algorithm", outcome.program.algorithm},
                                   {"chosen", outcome.chosen},
                                   {"time_us", report.time_ns / 1e3},
                                   {"expected_us", outcome.expected_ns / 1e3},
                                   {"bound_us", outcome.bound.time_ns() / 1e3},
                                   {"narrowest", outcome.bound.narrowest},
                                   {"algbw_gbs", outcome.algbw()},
                                   {"busbw_gbs", outcome.busbw(topology.nranks())},
                                   {"messages", report.messages},
                                   {"events", report.events},
                                   {"folded", outcome.folded},
                                   {"seconds", outcome.seconds}};
  for (size_t stage = 0; stage < report.stages.size(); ++stage) {
    const Stage& what = outcome.program.stages[stage];
    object["stages"].push_back({{"where", where_text(what)},
                                {"collective", name_of(what.collective)},
                                {"how", how_text(what)},
                                {"waited_us", report.stages[stage].waited_ns / 1e3},
                                {"share", report.stages[stage].waited_ns / report.time_ns},
                                {"under_way_us", report.stages[stage].open_ns / 1e3}});
  }
  for (const double time_ns : outcome.noisy_ns) object["noisy_us"].push_back(time_ns / 1e3);
  if (!order.empty()) {
    object["busiest_wire"] = Wires(topology).name(order[0]);
    object["busiest_share"] = report.wires[order[0]].busy_ns / report.time_ns;
  }
  return object.dump() + "\n";
}

}  // namespace ccom::simtool
