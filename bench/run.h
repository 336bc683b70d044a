// SPDX-License-Identifier: Apache-2.0
//
// What one rank does with the options, from the first communicator to the exit code.
#pragma once

#include <string>

#include "bench/cases.h"
#include "bench/launch/session.h"
#include "bench/options.h"

namespace ccom::bench {

// Communicators that carry barriers and figures: the emulated hosts, and nothing else of the options.
launch::SessionConfig control_config(const Options& options, int ranks);

// Of communicators that are measured: every setting. `algorithm`: as in CCOM_ALGO.
launch::SessionConfig measured_config(const Options& options, int ranks, const std::string& algorithm);

// The cases that are asked for.
Range range_of(const Options& options, int ranks);

// Collective over the ranks of `control`. All ranks return the same code unless their communication broke; only rank
// 0's outcome has a text for wrong data or a slow row.
launch::Outcome run_rank(const Options& options, launch::Place place, ccomComm_t control);

}  // namespace ccom::bench
