// SPDX-License-Identifier: Apache-2.0
//
// ccom itself between two hosts, and among all ranks, by its public API.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tools/doctor/meeting.h"

namespace ccom::doctor {

using Pair = std::pair<int, int>;  // hosts, the first below the second

// All pairs of n hosts in rounds in which no host appears twice: n - 1 rounds, n if n is odd.
std::vector<std::vector<Pair>> rounds_of_pairs(int hosts);

// Measures pairs, a round at a time; one that has been measured before keeps the better figures. Collective over all
// ranks. An error only if the meeting has ended.
Status measure_pairs(Meeting& meeting, int rank, const std::vector<std::vector<Pair>>& rounds, Report& report);

// Starts a communicator of all ranks, and reduces. Collective.
Status try_job(Meeting& meeting, int rank, Report& report);

}  // namespace ccom::doctor
