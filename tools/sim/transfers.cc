// SPDX-License-Identifier: Apache-2.0
//
// sendrecv as ccom-bench makes it: every rank sends to the next one and receives from the one before, all at once.
#include <algorithm>
#include <chrono>

#include "algorithms/forwarding.h"
#include "tools/sim/cases.h"
#include "topology/rank_routes.h"

namespace ccom::simtool {
namespace {

// Of messages that are forwarded (messages/wire.h, relay_wire.h).
constexpr size_t kAskedFrom = 992, kQuestionBytes = 1096;

// The longest that one of the messages takes alone.
Bound bound_of(const Topology& topology, const std::vector<std::vector<Rank>>& ways, double bytes) {
  const Wires wires(topology);
  Bound bound;
  bound.narrowest = "one message";
  for (const std::vector<Rank>& way : ways) {
    std::vector<uint32_t> path;
    wires.path(way.front(), way.back(), path);
    double latency_ns = 0;
    for (const uint32_t wire : path) {
      latency_ns += wires[wire].speed.latency_ns;
      bound.bandwidth_ns = std::max(bound.bandwidth_ns, bytes * 1e9 / wires[wire].speed.bytes_per_second);
    }
    bound.latency_ns = std::max(bound.latency_ns, latency_ns);
  }
  return bound;
}

}  // namespace

Result<Outcome> simulate_transfers(const Topology& topology, const Case& what, SimOptions options) {
  const auto begin = std::chrono::steady_clock::now();
  const int nranks = topology.nranks();
  if (nranks < 2) return error(Code::NotSupported, "simulate sendrecv: there is one rank");
  const RankRoutes routes(topology);
  std::vector<std::vector<Rank>> ways;
  std::vector<std::vector<Rank>> far;  // those that are forwarded
  for (Rank rank = 0; rank < nranks; ++rank) {
    const Rank next = (rank + 1) % nranks;
    std::vector<Rank>& way = ways.emplace_back(1, rank);
    for (const Hop& hop : routes.path(rank, next)) way.push_back(hop.to);
    if (way.size() == 1)
      return error(Code::NotSupported, "simulate sendrecv: nothing leads from rank %d to rank %d", rank, next);
    if (way.size() > 2) far.push_back(way);
  }
  size_t pieces = 1;
  if (!far.empty() && what.bytes > 0) {
    const size_t longest = std::ranges::max(far, {}, &std::vector<Rank>::size).size();
    const size_t piece = forwarded_piece_bytes(what.bytes, static_cast<int>(longest) - 1);
    pieces = (what.bytes + piece - 1) / piece;
  }
  options.unit_bytes = what.bytes;
  options.element_bytes = 1;
  options.fold_hosts = false;
  options.noise = {};
  Outcome outcome;
  outcome.what = what;
  outcome.chosen = true;
  outcome.bound = bound_of(topology, ways, static_cast<double>(what.bytes));
  const auto plan_of = [&](Rank rank) { return forwarding_plan(rank, nranks, ways, static_cast<uint32_t>(pieces)); };
  CCOM_TRY_ASSIGN(outcome.report, simulate(topology, plan_of, options));
  if (!far.empty() && what.bytes > kAskedFrom) {  // the question to the receiver, and the answer
    options.unit_bytes = kQuestionBytes;
    const auto question = [&](Rank rank) { return forwarding_plan(rank, nranks, far, 1); };
    CCOM_TRY_ASSIGN(const SimReport asked, simulate(topology, question, options));
    outcome.report.time_ns += 2 * asked.time_ns;
  }
  outcome.program = {
      .algorithm = far.empty() ? "direct" : "forwarded", .collective = what.collective, .nranks = nranks};
  outcome.program.stages.emplace_back();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

}  // namespace ccom::simtool
