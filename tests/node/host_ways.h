// SPDX-License-Identifier: Apache-2.0
//
// The ways of the calls of one host, as the planner gives them to communicators.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/collective.h"
#include "planner/planner.h"

namespace ccom {

// Of a call of all ranks of a named machine.
inline std::vector<NodeChoice> ways_of(const std::string& machine, Collective collective, size_t bytes,
                                       const LineCosts& lines = {}, Rank root = 0) {
  const Topology topology = *make_topology(machine);
  const Result<Choice> choice =
      choose(topology, {.shared_memory = true}, {collective, bytes, false, is_rooted(collective) ? root : -1});
  EXPECT_TRUE(choice && choice->program().is_node()) << machine;
  return node_ways(topology, choice->program(), choice->program().stages[0], lines);
}

// Of a sum by these domains, which no machine here has.
inline std::vector<NodeChoice> ways_by_domains(const std::string& machine,
                                               const std::vector<std::vector<Rank>>& groups) {
  const Topology topology = *make_topology(machine);
  const Result<Choice> choice = choose(topology, {.shared_memory = true}, {.bytes = size_t{1} << 20});
  Program program = choice->program();
  const NodeShape shape{NodeScheme::Domains, groups};
  program.stages[0].node = {.staged = shape, .readable = shape, .mapped = shape};
  return node_ways(topology, program, program.stages[0], {});
}

}  // namespace ccom
