// SPDX-License-Identifier: Apache-2.0
#include "comm/learning.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>

#include "base/call.h"
#include "base/log.h"
#include "base/version.h"
#include "plan/print.h"

namespace ccom {
namespace {

LearnedKind calls_of(const CallChoices::Kind& kind, HostRanks of) {
  return {.stage = std::string(name_of(kind.collective)),
          .call = kind_text(kind.words),
          .buffers = {},
          .ranks = of.ranks,
          .cores = std::clamp(of.cpus, 1, of.ranks),
          .unit_bytes = kind.bytes,
          .units = kind.given,
          .in_use = {}};
}

}  // namespace

HostRanks ranks_on(const Topology& topology, int host) {
  return {static_cast<int>(topology.ranks_of(host).size()), topology.hosts[static_cast<size_t>(host)].cpus};
}

std::string buffers_text(uint64_t buffers) {
  if (buffers == 0) return "ordinary";
  char text[32];
  std::snprintf(text, sizeof text, "mapped %016" PRIx64, buffers);
  return text;
}

LearnedWays learned_ways(std::span<const CallChoices::Found> found, HostRanks of, const std::string& processor) {
  LearnedWays learned{processor, kVersion};
  for (const CallChoices::Found& calls : found) {
    if (calls.choice.best_ns() == 0) continue;  // nothing was measured
    LearnedKind kind = calls_of(calls.kind, of);
    kind.buffers = buffers_text(calls.buffers);
    kind.in_use = to_text(calls.ways[calls.choice.best()]);
    kind.calls = calls.choice.asked();
    for (size_t way = 0; way < calls.ways.size(); ++way) {
      const double ns = calls.choice.median_ns(way);
      if (ns > 0) kind.median_us.emplace_back(to_text(calls.ways[way]), std::round(ns) / 1e3);
    }
    learned.kinds.push_back(std::move(kind));
  }
  return learned;
}

CallChoices::Expect expected_of(const LearnedWays& known, HostRanks of, bool logs, CallChoices::Expect expected) {
  return [&known, of, logs, expected = std::move(expected)](const CallChoices::Kind& kind, const NodeTask& task,
                                                            const std::vector<NodeChoice>& ways,
                                                            std::optional<uint64_t> buffers) {
    ExpectedWays ways_here = expected(kind, task, ways, buffers);
    LearnedKind asked = calls_of(kind, of);
    if (buffers) asked.buffers = buffers_text(*buffers);
    const LearnedKind* const found = nearest(known, asked);
    if (found == nullptr) return ways_here;
    const auto way = std::ranges::find(ways, found->in_use, [](const NodeChoice& choice) { return to_text(choice); });
    if (way != ways.end()) {
      ways_here.first = static_cast<size_t>(way - ways.begin());
      // Those that prices favour were tried when it was learned.
      if (!ways_here.prices.empty()) ways_here.prices[ways_here.first] = std::ranges::min(ways_here.prices);
    } else if (logs) {
      log(LogLevel::Info, "tuning file: %s, %s of %zu bytes: way '%s' does not exist here and is ignored",
          asked.call.c_str(), asked.stage.c_str(), static_cast<size_t>(found->unit_bytes), found->in_use.c_str());
    }
    return ways_here;
  };
}

}  // namespace ccom
