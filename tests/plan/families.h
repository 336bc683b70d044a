// SPDX-License-Identifier: Apache-2.0
//
// Every family of algorithms as a name and a maker of all ranks' plans: what the tests of this folder run over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "algorithms/collectives.h"

namespace ccom {

struct Family {
  std::string name;
  Collective collective = Collective::AllReduce;
  std::function<bool(int)> exists;        // for that many ranks
  std::function<Plan(const Call&)> make;  // of one rank

  // `in_place` as the C API allows it: a rooted gather or scatter aliases on the root only.
  std::vector<Plan> plans(int nranks, bool in_place) const;
};

const std::vector<Family>& families();

// Of all ranks, by rank.
using PlanOf = std::function<Plan(Rank)>;
std::vector<Plan> plans_of(int nranks, const PlanOf& plan_of);

// Of one block.
inline Step copy_of(Buffer from, uint32_t source, Buffer to, uint32_t target, uint32_t block = 0) {
  return {.kind = StepKind::Copy,
          .source_buffer = from,
          .target_buffer = to,
          .source = source,
          .target = target,
          .count = 1,
          .block = block};
}

Staged flat_shape(Pattern pattern, int nranks);
Staged core_shape(Pattern pattern, int nranks);
Staged torus_shape(int rows, int columns);
// `hosts` x `per_host` ranks, host after host; `rows` > 0: a torus of rows x columns inside, else Direct.
Staged host_shape(int hosts, int per_host, Pattern across, int rows = 0);

// The same hosts for a mixed-radix exchange, each one's ranks reaching one another.
Radix radix_shape(int hosts, int per_host);

}  // namespace ccom
