// SPDX-License-Identifier: Apache-2.0
//
// What the collectives through shared memory are told about the machine. Pure.
#pragma once

#include "algorithms/node.h"
#include "topology/topology.h"

namespace ccom {

// For ranks that all are on topology.hosts[0].
NodeTuning node_tuning(const Topology& topology);
// Bytes that a rank of a host may show in a call that no plan is made for; equal on all ranks of the host.
size_t small_call_bytes(const Topology& topology, int host);

}  // namespace ccom
