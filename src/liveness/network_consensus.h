// SPDX-License-Identifier: Apache-2.0
//
// A round of agreement between hosts (agreement.h): waits.
#pragma once

#include <vector>

#include "liveness/agreement_links.h"
#include "liveness/monitor.h"

namespace ccom {

// One rank's part in a round; blocks, see Monitor::agree(). Where no majority answers, for a little longer than
// `limit`.
Result<Consensus> agree_over_network(AgreementLinks& links, LivenessThread& thread, const MonitorConfig& config,
                                     uint64_t round, const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                                     const WaitLimit& limit);

}  // namespace ccom
