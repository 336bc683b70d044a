// SPDX-License-Identifier: Apache-2.0
//
// Messages that ranks between sender and receiver forward, as plans: what messages/relay.h does, for the simulator, the
// verifier and the lint.
#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace ccom {

// The part of `rank`. ways: of each message the ranks on its way, sender first. A message is a unit, of the sender's
// input and the receiver's output, in the order of `ways`. One that is forwarded goes in `pieces` blocks, each of which
// is received whole before it is sent on; a rank that forwards has two slots of scratch for each message.
Plan forwarding_plan(Rank rank, int nranks, std::span<const std::vector<Rank>> ways, uint32_t pieces);

}  // namespace ccom
