// SPDX-License-Identifier: Apache-2.0
//
// A round of agreement (consensus.h) on a host's Board: waits, and knows who is lost.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "liveness/board.h"
#include "liveness/monitor.h"

namespace ccom {

// One rank's part in a round; blocks, see Monitor::agree(). find_lost: an error that names ranks that have died or are
// silent; asked every few milliseconds.
Result<Consensus> agree_on_host(const Board& board, const MonitorConfig& config, uint64_t round,
                                const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                                const std::function<std::optional<Status>()>& find_lost, const WaitLimit& limit);

}  // namespace ccom
