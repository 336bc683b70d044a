// SPDX-License-Identifier: Apache-2.0
//
// Proves a collective's plans, all ranks together.
//
// 1. Every run is in range and of the length of the blocks in it; peers and slot rules hold; the input is not written.
//    Of units of unequal length run_values() proves that steps say which one they move.
// 2. The k-th send of a channel meets the k-th receive, of equal length.
// 3. No deadlock, with zero buffering: a send is done only when its receive is, and both only when both have started.
//    Steps never compete, so one legal order that ends shows that all do.
// 4. No two steps of a rank touch a block, one writing, unless one is ordered after the other by dependencies alone
//    (found again block by block in checks.cc, not by trusting the derivation).
// 5. Each output block holds each contribution exactly once (fingerprints: a random 61-bit word per contribution, added
//    modulo 2^61 - 1; a missing or doubled one slips through with probability 2^-61), in a random legal order of
//    events.
// 6. Every rank's expression for a block is the same tree, up to the order of two operands, and rounded at the same
//    places: bitwise equal results.
// 7. Each result passes exactly one step marked `completes`, and that step really completes it.
//
// Which order results hold their contributions in (VerifyReport::order) is no rule: it is asked of plans for operators
// that do not commute, and where the bits must not depend on the plan.
//
// Everywhere 1-4 hold for every step of every rank. 5-7 hold for all blocks, or, with VerifyOptions::blocks, for the
// blocks that were drawn: an error in a share f of the data then goes unseen with probability (1 - f)^blocks, so a
// single wrong message among thousands usually does. The same goes for lengths of blocks in scratch (1). Small sizes
// are to be proved in full, large ones are spot checks of the data flow.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "plan/node_plan.h"
#include "plan/plan.h"
#include "plan/value.h"

namespace ccom {

struct VerifyReport {
  int max_roundings = 0;       // combinations on the longest path to a result: what a narrow type loses accuracy by
  size_t max_sent_blocks = 0;  // blocks that the busiest rank sends
  uint64_t steps = 0;          // of all ranks
  uint64_t items = 0;          // blocks of data that the collective moves or sums
  uint64_t followed = 0;       // those of them that rules 5-7 were checked for
  SumOrder order = SumOrder::Canonical;  // the least of all results
};

struct VerifyOptions {
  uint64_t seed = 1;    // of words, order of events and drawn blocks
  uint32_t blocks = 0;  // how many blocks of data to follow to the results; 0: all
};

// `plans` holds one plan per rank, by rank; takes about 70 bytes per step of all ranks. An InternalError names the
// rank, the step and the broken rule.
Result<VerifyReport> verify(std::span<const Plan> plans, const VerifyOptions& options);
Result<VerifyReport> verify(std::span<const Plan> plans, uint64_t seed = 1);

// What units hold, by rank and unit; nothing: not written yet.
using UnitValues = std::vector<std::vector<std::optional<Value>>>;

// Runs the plans on given values and returns what their outputs hold: how stages of a program are chained. `blocks`:
// the blocks that input and output units are, by rank. Rules 1 to 4 as above; of each output unit all blocks must
// belong to that unit, and hold the same contributions.
Result<UnitValues> run_values(std::span<const Plan> plans, const BlockLists& blocks, const UnitValues& inputs,
                              uint64_t seed = 1);

}  // namespace ccom
