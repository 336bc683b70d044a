// SPDX-License-Identifier: Apache-2.0
//
// Shapes of messages that follow an imposed fabric.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/machine_view.h"
#include "planner/message_pricer.h"
#include "planner/planner.h"

namespace ccom {

inline constexpr char kNoLinks[] = "the imposed fabric lacks links that it needs";

// Levels of cores, devices and hosts, and the exchanges in fewest steps; of collectives without a root but AllToAll.
std::vector<MessageAlgorithm> fabric_algorithms(const MachineView& view, Collective collective);

// The levels that an AllToAll goes along: cores of a device, dimensions of a torus or ring, hosts. None: devices that
// are linked otherwise.
std::optional<Staged> exchange_levels(const MachineView& view);

// All ranks such that neighbours, and the two ends, are linked: a Hamiltonian cycle of the devices, the cores of each
// in a row; from host to host any device has a way. None: no such order.
std::vector<Rank> ring_order(const MachineView& view);

// Whether windows of one have something to do while others wait: on another level, or on a torus on whose links the
// streams of one window do not keep in step, or whose streams go both ways at once.
bool gains_by_windows(const MachineView& view, const Staged& shape);

// Windows of a staged algorithm, chunks of a tree.
void set_count(MessageAlgorithm& algorithm, int count);

// The price of an algorithm with as many windows or chunks, and by position or not, as make it cheapest, which it then
// has; `note` says so.
Price cheapest_form(const MachineView& view, const Settings& settings, const Question& question,
                    const MessagePricer& pricer, MessageAlgorithm& algorithm, std::string& note);

}  // namespace ccom
