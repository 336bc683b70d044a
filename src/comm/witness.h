// SPDX-License-Identifier: Apache-2.0
//
// Finds ranks whose results differ although they must be equal: bad memory, a processor that computes wrongly, an
// operator of the user's that is not the same everywhere, replicas that have diverged.
//
// A digest of each result becomes part of what the next call's header compares (numbered() of base/call.h); who differs
// from most ranks is found on the board and over the control tree (results_error() of liveness/call_mismatch.h).
#pragma once

#include "base/collective.h"
#include "base/types.h"

namespace ccom {

// Whether outputs are equal on all ranks.
constexpr bool has_equal_results(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::AllGather ||
         collective == Collective::Broadcast;
}

// Of `data` after that call, and of what was digested before: never 0. Everything up to 2 KiB, else 32 pieces of 64
// bytes, from other places with each call.
uint64_t digest_of(ConstBytes data, uint64_t call, uint64_t before);

}  // namespace ccom
