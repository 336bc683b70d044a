// SPDX-License-Identifier: Apache-2.0
//
// What no algorithm can beat: bytes that must cross the narrowest cut around a host or a device, or, of an alltoall,
// between the halves of a torus; and one message over the longest way.
#pragma once

#include "planner/planner.h"

namespace ccom {

struct Bound {
  double bandwidth_ns = 0;
  double latency_ns = 0;
  const char* narrowest = "";  // "devices' links", "hosts' uplinks", "racks' uplinks", "the bisection", "memory"
  double time_ns() const { return bandwidth_ns > latency_ns ? bandwidth_ns : latency_ns; }
};

// Cuts that separate one host, or one device, from all others; every rank alike. Sources: Chan, Heimlich, Purkayastha &
// van de Geijn, Collective communication: theory, practice, and experience, 2007; Patarasuk & Yuan, 2009.
// `uses_memory`: ranks of a host use its memory, without messages; then only the ways between hosts count.
Bound lower_bound(const Topology& topology, const Question& question, bool uses_memory = false);

}  // namespace ccom
