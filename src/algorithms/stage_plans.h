// SPDX-License-Identifier: Apache-2.0
//
// From a program's stages to the plans of single ranks. Pure.
#pragma once

#include <functional>
#include <span>

#include "algorithms/collectives.h"
#include "plan/program.h"

namespace ccom {

// A plan of an algorithm whose units are those of the collective (not Blocks). `call.rank` of call.nranks members.
Plan message_plan(const MessageAlgorithm& algorithm, const Call& call);

// The same for all ranks of one call out of place; what they share is worked out once. `algorithm` outlives the
// function.
std::function<Plan(Rank)> message_plans(const MessageAlgorithm& algorithm, Collective collective, int nranks,
                                        Rank root);

// Of a member of a group of an Across stage, or of rank `member` in an All stage (group 0). Peers are indices into the
// group. In an Across stage no step spans units, which may lie apart, unless its algorithm is Blocks and the program
// has no tiles; in a program of a v-form none does.
Plan stage_plan(const Program& program, const Stage& stage, size_t group, int member, bool in_place);

// Of a member of a group of a Host stage.
NodePlan stage_node_plan(const Program& program, const Stage& stage, size_t group, int member, bool in_place,
                         std::span<const Reach> reach);

// Every block straight from those who give it to those who get it (block_exchange.cc): one message for each block and
// taker, 1 step; blocks that lie together at both ends travel together. A sum is formed by each of its takers from all
// parts in the order of members: one rounding. Any numbers of blocks for each member, also none. In place as out of
// place: what a member gives to itself is copied, perhaps onto itself.
Plan block_exchange_plan(const Program& program, const Stage& stage, size_t group, int member);

}  // namespace ccom
