// SPDX-License-Identifier: Apache-2.0
//
// What a rank is told of the outcome of a round.
#pragma once

#include <vector>

#include "liveness/consensus.h"
#include "liveness/monitor.h"

namespace ccom {

// ranks: what the outcome's numbers stand for. Errors: a Mismatch or a Timeout, which all ranks get that are in, and
// RemoteError for `self` alone if the others have gone on without it.
Result<Consensus> conclude(const ConsensusOutcome& outcome, const std::vector<Rank>& ranks, Rank self,
                           bool is_interrupted);

}  // namespace ccom
