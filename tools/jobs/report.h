// SPDX-License-Identifier: Apache-2.0
//
// What is seen as sentences: first how it is, then why, then what all ranks do.
#pragma once

#include <string>
#include <vector>

#include "tools/jobs/health.h"
#include "tools/jobs/seen.h"

namespace ccom {

// "communicator 5f0c3a (training)"
std::string title_of(const CommunicatorSeen& communicator);
// ", other hosts as of 0.2 s ago", or "" if nothing is told of any
std::string told_before(const CommunicatorSeen& communicator);
// "ranks 4-7 are unknown, no answer", or "" if all are seen
std::string unknown_ranks(const CommunicatorSeen& communicator);
// The sentences about what is wrong, each without an end of line.
std::vector<std::string> findings(const HostSeen& seen, const Health& health);

std::string to_text(const HostSeen& seen, const Health& health);

}  // namespace ccom
