// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads on hosts, transports and fabrics of many forms.
#pragma once

#include <vector>

#include "tests/harness/world.h"

namespace ccom {

inline std::vector<World> worlds() {
  return {{"one", {0}},
          {"two", {0, 0}},
          {"three", {0, 0, 0}},
          {"eight", {0, 0, 0, 0, 0, 0, 0, 0}},
          {"tcp", {0, 0, 0, 0, 0}, "tcp"},
          {"shm_messages", {0, 0, 0, 0}, nullptr, nullptr, "recursive_doubling"},
          {"gather_tree", {0, 0, 0, 0, 0}, "tcp", nullptr, "gather_tree"},
          {"in_order", {0, 0, 0, 0, 0}, "tcp", nullptr, "reduce:in_order"},
          {"hosts_2_2", {0, 0, 1, 1}},
          {"hosts_3_1_2", {0, 0, 0, 1, 2, 2}},
          {"hosts_in_turn", {0, 1, 0, 1, 0}},
          {"hosts_of_one", {0, 1, 2}},
          {"ring_5", {0, 0, 0, 0, 0}, nullptr, "ring:5"},
          {"torus_2_3", {0, 0, 0, 0, 0, 0}, nullptr, "torus:2x3"}};
}

}  // namespace ccom
