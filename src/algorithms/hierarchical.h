// SPDX-License-Identifier: Apache-2.0
//
// Programs for several hosts: shared memory inside a host, messages between hosts, for any numbers of ranks per host
// and any order of ranks.
//
//   allreduce, hosts A {0 1} and B {2 3}    reduce-scatter inside, allreduce across, allgather inside
//
//     0 -- 1      Every owner ends the first stage with its host's sum of its slice (here half), exchanges it with the
//     |    |      owners of the same slice on the other hosts, and the slices are put together again.
//     2 -- 3
//
// Owners. The first `owners` local ranks of every host exchange data with other hosts; as many as the smallest host has
// ranks ("sharded": every network interface works, a host sends the bound of 2 n (H-1)/H bytes for n bytes on H hosts)
// or one ("leaders": fewest messages, one flow per wire; best for short calls and on slow wires). Vectors are cut into
// a slice for each owner; a unit that belongs to local rank l travels through owner l % owners of each host. A host of
// more ranks than others gives and gets inside. With a root, the one owner of a host is its rank with the root's local
// rank, or its last one.
//
// Bytes of one rank inside a host of g ranks, with k owners, for n bytes: allreduce reads n, writes n/k and n; steps
// and bytes across are those of the algorithm across for n/k. Roundings: one inside, then those across.
//
// Source: the two- and three-level allreduce of Thakur, Rabenseifner and Gropp, Optimization of collective
// communication operations in MPICH, 2005; multi-leader forms by Bayatpour et al., SC'17.
#pragma once

#include <vector>

#include "plan/program.h"

namespace ccom {

// The ranks of each host, ascending: a rank's index is its local rank. No host is empty.
using HostRanks = std::vector<std::vector<Rank>>;

struct HierarchicalShape {
  HostRanks hosts;
  int owners = 1;              // 1 to the ranks of the smallest host
  NodeChoice reduce_inside{};  // to owners; allreduce, reduce, reduce-scatter, barrier
  NodeChoice spread_inside{};  // from owners, and to owners in the collectives without sums
  MessageAlgorithm across{};   // over as many ranks as there are hosts
  size_t tile_bytes = 0;
  int lanes = 1;
  bool sums_at_once = false;  // it is for hierarchical_direct_program()
  // As what sums cross hosts (hierarchical_typed.cc): AllReduce as blocks; AllReduce, Reduce and ReduceScatter of
  // narrow floats as Float32, rounded at the end. Call: as they are.
  UnitType wire = UnitType::Call;
  bool widens = false;  // then: inputs are narrow, hosts' sums float32; always, if they cross as Float32
};

// Every collective but SendReceive; AllToAll needs hosts of equally many ranks (serves_hosts). Which algorithms across
// can serve: those of the collective that Stage::collective of the Across stage names, over hosts; see also
// needs_blocks_across(). The name is "hierarchical_leaders" with one owner, else "hierarchical_sharded".
Program hierarchical_program(Collective collective, Rank root, const HierarchicalShape& shape);

// AllReduce and Reduce whose contributions cross hosts as they are, straight to the rank that combines them all at
// once, in rank order; hierarchical_direct.cc has steps and bytes. `across` is Blocks; nothing is reduced inside, and
// one lane serves any number of hosts. The name is "hierarchical_direct".
Program hierarchical_direct_program(Collective collective, Rank root, const HierarchicalShape& shape);

// Whether there is a hierarchical program, with `owners` owners.
bool serves_hosts(Collective collective, const HostRanks& hosts, int owners);
// Whether MessageAlgorithm::Kind::Blocks is the only one that can run across.
bool needs_blocks_across(Collective collective, const HostRanks& hosts, int owners);

}  // namespace ccom
