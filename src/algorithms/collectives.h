// SPDX-License-Identifier: Apache-2.0
//
// From a shape to one rank's plan: the entry points of this room. Pure functions of their arguments.
#pragma once

#include "algorithms/shape.h"
#include "plan/plan.h"

namespace ccom {

// Who asks for what.
struct Call {
  Collective collective = Collective::AllReduce;
  Rank rank = 0;
  int nranks = 1;
  Rank root = -1;         // rooted collectives
  bool in_place = false;  // this rank's buffers alias as the C API allows
};

// AllReduce, ReduceScatter, AllGather and Barrier over a staged shape (staged.cc).
//
// Down the levels each splits the data among the members of a group, up the levels they are put together again; the
// core, if there is one, is an allreduce of what is left. In place allowed. Every rank computes the same expression for
// a block, so results are bitwise equal. ReduceScatter and AllGather need every rank to be an owner on every level, and
// no core.
Plan staged_plan(const Call& call, const Staged& shape, const std::string& algorithm);
// Whether the shape can serve ReduceScatter and AllGather.
bool divides_evenly(const Staged& shape, int nranks);

// Every collective but AllToAll over any tree (tree.cc): the rooted ones with tree.root as root, the others as a way up
// to it and a way down. Only tree edges carry data.
Plan tree_plan(const Call& call, const Tree& tree, const std::string& algorithm);
// AllReduce, Broadcast and Reduce with the vector shared out over several trees by their chunks; tree i uses channel i.
Plan tree_plan(const Call& call, const std::vector<Tree>& trees, const std::string& algorithm);

// AllReduce of short vectors over many hosts (mixed_radix.cc), through all of a host's ranks at once. A Barrier gets
// the same plan, an allreduce (of nothing). In place allowed; every rank computes the same expression.
Plan mixed_radix_plan(const Call& call, const Radix& shape, const std::string& algorithm);

// AllToAll, everybody with everybody (alltoall.cc): p - 1 messages of one block, in place through scratch.
Plan pairwise_alltoall_plan(const Call& call);
// AllToAll where not all links exist: an allgather of everything, of which each rank keeps its part. p times the bytes.
// `gather` is this rank's AllGather plan, made out of place.
Plan routed_alltoall_plan(const Call& call, const Plan& gather);

// Send (call.root < 0: to `peer`) and receive as one-step plans (alltoall.cc).
Plan send_plan(Rank rank, int nranks, Rank peer);
Plan receive_plan(Rank rank, int nranks, Rank peer);

}  // namespace ccom
