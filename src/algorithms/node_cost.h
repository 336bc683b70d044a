// SPDX-License-Identifier: Apache-2.0
//
// What plans through shared memory cost, counted from the plans. Pure.
//
// A call is a row of phases with a barrier between each two; of several tiles each runs through all phases. A phase
// takes as long as its slowest rank, or as a domain's memory or its way to the others if its ranks together load and
// store more than that carries. Bytes are priced by where they lie: a rank's own buffers by the size of what a call
// touches, staging memory, results and others' outputs as what another core has just stored or loaded, buffers that the
// kernel reads by calls. At a barrier, and when a phase begins to read what others have just written, lines come from
// other cores: the first takes its latency, further ones overlap, and those who want the same line are served one after
// another. More ranks than cores: all work takes turns, and so do barriers.
//
// What a plan reads after a barrier is fetched after it. In tiny calls payload rides in the line of an arrival, which
// saves one_shot that fetch and about doubles the number of ranks from which gather_release is the cheaper of the two.
#pragma once

#include <span>
#include <vector>

#include "base/measured_costs.h"
#include "base/memory_costs.h"
#include "plan/node_plan.h"

namespace ccom {

// The machine that a plan's ranks share.
struct NodeMachine {
  std::span<const int> domains{};               // of memory, by rank; empty: one
  int cpus = 0;                                 // 0: one for each rank
  size_t first_cache_bytes = size_t{48} << 10;  // of a core
  size_t cache_bytes = size_t{2} << 20;         // of a core: the second level
  size_t last_cache_bytes = size_t{32} << 20;   // of all
  size_t staging_bytes = size_t{256} << 10;     // of a rank, for one tile of a plan
  MemoryCosts costs{};
  LineCosts lines{};  // of passing staging memory's bytes, in place of costs; 0: not known
  // Of inputs, what nobody has written since others last read it, so that it is still in their caches.
  double reused = 0;
};

struct NodeExtent {
  size_t unit_bytes = 0;
  size_t tiles = 1;
  size_t touched_bytes = 0;  // of the whole call, on all ranks: input and output; 0: those of the plans
  bool reads = false;        // others' inputs and outputs are read through the kernel
  bool streams = false;      // outputs are stored past the caches
  // Of staging memory, see NodeChoice.
  bool streams_shared = false;
  bool claims_lines = false;
};

// Of one rank.
struct NodeTraffic {
  double meets = 0;
  double local_bytes = 0;     // loaded and stored: memory of ranks of its own domain
  double remote_bytes = 0;    // of others
  double combined_bytes = 0;  // of both: loaded to be combined
  double lines = 0;           // arrivals of others that it waits for, in all meets
  double bytes() const { return local_bytes + remote_bytes; }
};

// domains: by rank; empty: one.
NodeTraffic traffic_of(const NodePlan& plan, const NodeExtent& extent, std::span<const int> domains);

// The time of a call. plans: of all ranks.
double node_time_ns(std::span<const NodePlan> plans, const NodeExtent& extent, const NodeMachine& machine);

// Of that, what each rank does before it first waits for others: who comes early has done it when the last one comes.
std::vector<double> node_first_ns(std::span<const NodePlan> plans, const NodeExtent& extent,
                                  const NodeMachine& machine);

}  // namespace ccom
