// SPDX-License-Identifier: Apache-2.0
//
// Proofs in production (CCOM_VERIFY): programs before their first byte moves, and what a host stage continues with for
// a combination of reachable buffers that has not been met before, before an output is written.
#pragma once

#include <span>

#include "base/status.h"
#include "plan/program.h"
#include "planner/planner.h"

namespace ccom {

// InternalError with the broken rule, see plan/program_verify.h. Every rank proves the whole program, so all refuse a
// wrong one. Takes milliseconds for a few ranks, and longer the more there are. asked: what it was chosen
// for; the order of contributions and the number of roundings are held against it.
Status prove(const Program& program, const Question& asked);
// A program of the user's: ConfigError with the reason, also if it rounds sums of narrow floats more often than
// `allowed_roundings`, or has not the order of contributions that is asked for.
Status prove_users(const Program& program, const Question& asked, int allowed_roundings);

// Of the ranks of one host, for buffers that are reached as `reach` says by local rank.
Status prove_reach(const NodeTask& task, const NodeChoice& choice, std::span<const Reach> reach);

}  // namespace ccom
