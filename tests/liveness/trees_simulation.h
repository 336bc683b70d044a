// SPDX-License-Identifier: Apache-2.0
//
// One random history of deaths on hosts of several ranks, in virtual time: the production TreeState in all trees, with
// one board per host.
#pragma once

#include "simulation.h"

namespace ccom {

// Two to twelve hosts of one to three ranks; those with children have two at least. One or two ranks of different hosts
// die within 12 ms of each other; their connections end up to 30 ms later. The threads of all others are late by up to
// 12 ms each time, as on a crowded machine. Asserted: within 300 ms every survivor has an error, it names victims only,
// and it is the same on all.
History simulate_trees(uint64_t seed);

}  // namespace ccom
