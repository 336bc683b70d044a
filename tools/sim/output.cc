// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/output.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>

namespace ccom::simtool {
namespace {

template <typename... Args>
std::string format(const char* text, Args... args) {
  char line[512];
  std::snprintf(line, sizeof line, text, args...);
  return line;
}

std::vector<uint32_t> by_busy_time(const SimReport& report) {
  std::vector<uint32_t> wires(report.wires.size());
  std::iota(wires.begin(), wires.end(), 0);
  std::erase_if(wires, [&](uint32_t wire) { return report.wires[wire].messages == 0; });
  std::ranges::stable_sort(wires, std::greater<>{}, [&](uint32_t wire) { return report.wires[wire].busy_ns; });
  return wires;
}

}  // namespace

std::string table_head() {
  return format("%-14s %12s %-24s %13s %10s %10s %8s %12s %10s\n", "collective", "bytes", "algorithm", "time us",
                "algbw", "busbw", "x bound", "expected us", "simulated");
}

std::string table_row(const Topology& topology, const Outcome& outcome) {
  return format("%-14s %12zu %-24s %13.3f %10.3f %10.3f %8.2f %12.3f %9.2fs%s\n",
                std::string(name_of(outcome.what.collective)).c_str(), outcome.what.bytes,
                (outcome.algorithm + (outcome.chosen ? " *" : "")).c_str(), outcome.report.time_ns / 1e3,
                outcome.algbw(), outcome.busbw(topology.nranks()), outcome.report.time_ns / outcome.bound.time_ns(),
                outcome.expected_ns / 1e3, outcome.seconds, outcome.folded ? " folded" : "");
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
  std::string text = format("  %-12s %9s %9s %16s %8s\n", "wires", "there", "used", "bytes", "busy");
  for (const auto& [kind, sum] : sums) {
    text += format("  %-12s %9zu %9zu %16.0f %7.1f%%\n", kind.c_str(), sum.wires, sum.used, sum.bytes,
                   100 * sum.busy / (report.time_ns * static_cast<double>(sum.wires)));
  }
  text += format("  %-34s %10s %16s %8s\n", "busiest", "messages", "bytes", "busy");
  const std::vector<uint32_t> order = by_busy_time(report);
  for (size_t i = 0; i < std::min(most, order.size()); ++i) {
    const WireUse& use = report.wires[order[i]];
    text += format("  %-34s %10llu %16.0f %7.1f%%\n", wires.name(order[i]).c_str(),
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
                                   {"algorithm", outcome.algorithm},
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
  if (!order.empty()) {
    object["busiest_wire"] = Wires(topology).name(order[0]);
    object["busiest_share"] = report.wires[order[0]].busy_ns / report.time_ns;
  }
  return object.dump() + "\n";
}

}  // namespace ccom::simtool
