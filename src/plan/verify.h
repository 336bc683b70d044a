// SPDX-License-Identifier: Apache-2.0
//
// Proves a collective's plans, all ranks together.
//
// 1. Every run is in range; peers, channels and slot rules hold; untouchable buffers are not touched.
// 2. The k-th send of a channel meets the k-th receive, of equal length.
// 3. No deadlock, with zero buffering: a send is done only when its receive is, and both only when both have started.
// 4. No two steps of a rank touch a block, one writing, unless one is ordered after the other by dependencies alone
// (checked by
//    transitive closure, not by trusting the derivation).
// 5. Each output block holds each contribution exactly once (fingerprints: a random 61-bit word per contribution, added
// modulo
//    2^61 - 1; a missing or doubled one slips through with probability 2^-61), in a random legal order of events.
// 6. Every rank's expression for a block is the same tree, up to the order of two operands: bitwise equal results.
// 7. Each result passes exactly one step marked `completes`, and that step really completes it.
#pragma once

#include <span>

#include "base/status.h"
#include "plan/plan.h"

namespace ccom {

struct VerifyReport {
  int max_roundings = 0;       // combinations on the longest path to a result: what a narrow type loses accuracy by
  size_t max_sent_blocks = 0;  // blocks that the busiest rank sends
};

// `plans` holds one plan per rank, by rank. An InternalError names the rank, the step and the broken rule.
Result<VerifyReport> verify(std::span<const Plan> plans, uint64_t seed = 1);

}  // namespace ccom
