// SPDX-License-Identifier: Apache-2.0
//
// What plans through shared memory cost on a machine of several memory domains, counted from the plans. Pure.
//
// A call is a row of phases with a meet between each two. A phase takes as long as its slowest rank, or as a domain's
// memory or its way to the others if its ranks together load and store more than that carries. At a meet, and when a
// phase begins to read what others have just written, lines come from other cores: the first takes its latency, further
// ones overlap, and those who want the same line are served one after another.
//
// What a plan reads after a meet is fetched after it. In tiny calls payload rides in the line of an arrival, which
// saves one_shot that fetch and about doubles the number of ranks from which gather_release is the cheaper of the two.
#pragma once

#include <span>

#include "plan/node_plan.h"

namespace ccom {

// Nanoseconds. Figures of two-socket servers with about 8 to 16 cores in each domain, rounded: an expectation, not a
// measurement. Latencies are in the range of Ramos and Hoefler, Modeling communication in cache-coherent SMP systems,
// HPDC'13; a core has about ten misses under way.
struct NodePrices {
  // One core: a copy in its own domain reads and writes 10 GB/s, to or from another one less.
  double local_byte = 0.1, remote_byte = 0.15;
  // All cores of a domain: 100 GB/s of memory, 30 GB/s to and from all others (a socket's links, halved).
  double domain_local_byte = 0.01, domain_remote_byte = 1.0 / 30;
  // A line that another core has written.
  double local_latency = 60, remote_latency = 140;
  double local_line = 6, remote_line = 14;  // every further one
  double domain_remote_line = 6;            // for all cores of a domain together
  double reader = 10;                       // every further one who wants the same line
};

struct NodeExtent {
  size_t unit_bytes = 0;
  size_t tiles = 1;
};

// Of one rank.
struct NodeTraffic {
  double meets = 0;
  double local_bytes = 0;     // loaded and stored: memory of ranks of its own domain
  double remote_bytes = 0;    // of others
  double combined_bytes = 0;  // of both: loaded to be combined
  double lines = 0;           // arrivals of others that it waits for, in all meets
};

// domains: by rank; empty: one.
NodeTraffic traffic_of(const NodePlan& plan, const NodeExtent& extent, std::span<const int> domains);

// The time of a call. plans: of all ranks.
double node_time_ns(std::span<const NodePlan> plans, const NodeExtent& extent, std::span<const int> domains,
                    const NodePrices& prices);

}  // namespace ccom
