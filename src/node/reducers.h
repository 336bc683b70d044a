// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node/node_call.h"

namespace ccom {

// The kernels of the last calls, which the next ones mostly use again.
class Reducers {
 public:
  // completes: every contribution is in afterwards.
  const Reducer& get(const NodeCall& call, bool completes) {
    const uint32_t divide_by = call.op == ReduceOp::Avg && completes ? call.divide_by : 0;
    const Reduction wanted{call.type, call.op, divide_by, call.rounding, call.seed, call.user};
    Chosen& chosen = completes ? complete_ : partial_;
    if (!chosen.valid || chosen.reduction != wanted) chosen = {true, wanted, Reducer(wanted)};
    return chosen.reducer;
  }

 private:
  struct Chosen {
    bool valid = false;
    Reduction reduction;
    Reducer reducer;
  };
  Chosen partial_, complete_;
};

}  // namespace ccom
