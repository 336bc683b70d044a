// SPDX-License-Identifier: Apache-2.0
//
// Measures ccom between two hosts, and among all ranks, through its public API.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tools/doctor/rendezvous.h"

namespace ccom::doctor {

using Pair = std::pair<int, int>;  // hosts, the first below the second

// All pairs of n hosts in rounds in which no host appears twice: n - 1 rounds, n if n is odd.
std::vector<std::vector<Pair>> rounds_of_pairs(int hosts);

// Measures pairs, round by round; a pair that was measured before keeps the better result. Collective over all ranks.
// An error only if the rendezvous has ended.
Status measure_pairs(JobRendezvous& rendezvous, int rank, const std::vector<std::vector<Pair>>& rounds, Report& report);

// Starts a communicator of all ranks and runs allreduces. Collective.
Status try_job(JobRendezvous& rendezvous, int rank, Report& report);

}  // namespace ccom::doctor
