// SPDX-License-Identifier: Apache-2.0
//
// Shapes of messages that follow an imposed fabric.
#pragma once

#include <string>
#include <vector>

#include "planner/machine_view.h"
#include "planner/planner.h"

namespace ccom {

inline constexpr char kNoLinks[] = "the imposed fabric lacks links that it needs";

// Levels of cores, devices and hosts, and the exchanges in fewest steps; of collectives without a root but AllToAll.
std::vector<MessageAlgorithm> fabric_algorithms(const MachineView& view, Collective collective);

// All ranks such that neighbours, and the two ends, are linked: a Hamiltonian cycle of the devices, the cores of each
// in a row; from host to host any device has a way. None: no such order.
std::vector<Rank> ring_order(const MachineView& view);

// Whether windows of one have something to do while others wait: on another level, or on a torus on whose links the
// streams of one window do not keep in step.
bool gains_by_windows(const MachineView& view, const Staged& shape);

// How often data may be cut to flow through an algorithm, windows of a staged one, chunks of a tree: 1, 2, 4, ...
std::vector<int> possible_counts(const MachineView& view, const MessageAlgorithm& algorithm, const Settings& settings,
                                 const Question& question);
void set_count(MessageAlgorithm& algorithm, int count);

}  // namespace ccom
