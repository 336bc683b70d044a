// SPDX-License-Identifier: Apache-2.0
//
// Collectives through memory that the ranks of a node share: plans from shapes. Pure functions, every collective but
// SendReceive, in place where the C API allows it.
//
// n: bytes of the vector or of all units together; p: ranks. Bytes are loads and stores of one rank.
//
// one_shot        1 meet, 2n + (p+1)n: everybody copies its part in and combines all parts. Tiny and small. 2
//                 meets and (p+1)n where all inputs can be read.
// gather_release  2 meets: the first rank of every group combines all parts, its group copies the result. The same bits
//                 as one_shot. Tiny, from about 16 ranks on as many cores: fewer readers per line.
// two_shot        2 meets, about 5n; 2n where all buffers can be reached: the least there is. Rank r combines
//                 part r of all inputs and stores it for everybody. The tiles of a long call are pipelined.
// pull            3 meets, 3n + n/p: two_shot where memory can be read, not written: every rank reads its part of all
//                 inputs, and then the others' parts of the result from their outputs. No staging.
// domains         3 meets: two_shot inside every memory domain, sums of domains exchanged between: each domain reads
//                 n(d-1) from others instead of n(p - p/d). Two roundings.
// direct          any lists of blocks: one copy in of what others get (none where the buffer can be reached), one copy
//                 or sum out.
//
// Sources: Graham and Shipman, MPI support for multi-core architectures, 2008 (shared segments); Bayatpour et al.,
// Scalable reduction collectives with data partitioning-based multi-leader design, SC'17 (parts and leaders); Jain et
// al., Framework for scalable intra-node collectives using shared memory, SC'18 (flags and payload); the rest is ours.
#pragma once

#include <span>

#include "plan/node_plan.h"

namespace ccom {

// One rank's plan. reach: by rank; a rank that runs an AllToAll or a OneShot in place must not let others reach its
// input; for OneShot no output is reached, for GatherRelease nothing. All schemes but Direct are for AllReduce, OneShot
// and TwoShot also for Reduce.
NodePlan node_plan(const NodeTask& task, Rank rank, bool in_place, const NodeShape& shape,
                   std::span<const Reach> reach);

}  // namespace ccom
