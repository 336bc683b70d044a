// SPDX-License-Identifier: Apache-2.0
//
// 64 hosts of one rank each in racks, as schedulers and launchers place them.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "algorithms/shape.h"
#include "tests/harness/results.h"
#include "topology/topology.h"

namespace ccom {

constexpr int kRanks = 64;

// One rank on each of 64 hosts, in racks of these sizes in turn.
inline Topology in_racks_of(const std::string& sizes) {
  return value_of(make_topology("64*host:1@100Gbit+racks:" + sizes + "/4"));
}

// What a scheduler leaves a job: runs of 1 to 15 hosts of a rack, in the order of racks.
inline Topology in_fragments(uint32_t seed) {
  Topology topology = in_racks_of("64");
  std::mt19937 random(seed);
  int rack = -1;
  for (uint32_t left = 0; Host & host : topology.hosts) {
    if (left == 0) {
      left = 1 + random() % 15;
      ++rack;
    }
    host.rack.name = "rack" + std::to_string(rack);
    --left;
  }
  return topology;
}

// Ranks in no order of racks: host i in rack i mod 8.
inline Topology dealt_out() {
  Topology topology = in_racks_of("64");
  for (size_t i = 0; i < topology.hosts.size(); ++i) topology.hosts[i].rack.name = "rack" + std::to_string(i % 8);
  return topology;
}

inline std::vector<Rank> in_row() { return flat_level(Pattern::Direct, kRanks).groups[0]; }

}  // namespace ccom
