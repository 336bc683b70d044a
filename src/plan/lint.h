// SPDX-License-Identifier: Apache-2.0
//
// How well plans use a fabric: in which rounds their messages can go, and what each link carries.
//
// Evaluated in lock-step: a message's round is one more than the latest round of anything that its two steps wait for,
// and not before that of the message ahead of it on its channel; local steps take none. A message loads every link of
// its path in its round. A round lasts as long as its most loaded link, so the plan's bandwidth term is the sum of the
// rounds' greatest loads. Loads are counted in vectors: the data of the collective on the rank that holds most of it is
// 1, and blocks count as equally long. What rounds cannot show is what a real fabric gains when messages of different
// rounds overlap, and what it loses to latency, posting and reduction: the simulator's task.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/plan.h"

namespace ccom {

// Directed links with numbers from 0.
struct LintFabric {
  uint32_t links = 0;
  // The links from one rank to another, in order. The span holds until the next call.
  std::function<std::span<const uint32_t>(Rank from, Rank to)> path;
  // How much longer a load takes on each link than on one of weight 1; empty: all have that.
  std::vector<double> weights{};
};

struct LintRound {
  uint64_t messages = 0;
  uint32_t busy_links = 0;
  double max_load = 0;  // of one link, times its weight
  uint32_t busiest_link = 0;
};

struct LintReport {
  std::string plan;               // "allreduce torus of 16 ranks"
  std::vector<LintRound> rounds;  // the first one is round 1
  uint64_t messages = 0;
  uint64_t hops = 0;               // links of all messages' paths
  std::vector<double> link_loads;  // in all rounds together, without weights
  uint32_t busiest_link = 0;       // by load times weight
  double bandwidth_term = 0;       // sum of the rounds' max_load
};

// The plans must be proved already; what does not match or waits for ever is an InternalError all the same. Ranks that
// exchange messages without a path are an InvalidArgument.
Result<LintReport> lint(std::span<const Plan> plans, const LintFabric& fabric);

}  // namespace ccom
