// SPDX-License-Identifier: Apache-2.0
//
// The work of one rank, from the first communicator to the exit code.
#pragma once

#include <string>

#include "bench/cases.h"
#include "bench/launch/session.h"
#include "bench/options.h"

namespace ccom::bench {

// Config of communicators for barriers and figures: the emulated hosts, and no other options.
launch::SessionConfig control_config(const Options& options, int ranks);

// Config of measured communicators: all settings. `algorithm`: as in CCOM_ALGO.
launch::SessionConfig measured_config(const Options& options, int ranks, const std::string& algorithm);

// The requested cases.
Range range_of(const Options& options, int ranks);

// Collective over the ranks of `control`. All ranks return the same code unless their communication broke; only rank
// 0's outcome has a text for wrong data or a slow row.
launch::Outcome run_rank(const Options& options, launch::Place place, ccomComm_t control);

}  // namespace ccom::bench
