// SPDX-License-Identifier: Apache-2.0
#include "algorithms/collectives.h"

#include "base/assert.h"

namespace ccom {

Plan empty_plan(const Call& call, const std::string& algorithm) {
  CCOM_ASSERT(call.rank >= 0 && call.rank < call.nranks);
  CCOM_ASSERT(!is_rooted(call.collective) || (call.root >= 0 && call.root < call.nranks));
  const bool is_root = call.rank == call.root;
  Plan plan;
  plan.collective = call.collective;
  plan.algorithm = algorithm;
  plan.rank = call.rank;
  plan.nranks = call.nranks;
  plan.root = is_rooted(call.collective) ? call.root : -1;
  plan.in_place = call.in_place;
  plan.input_units = input_units(call.collective, call.nranks, is_root);
  plan.output_units = output_units(call.collective, call.nranks, is_root);
  return plan;
}

}  // namespace ccom
