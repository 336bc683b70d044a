// SPDX-License-Identifier: Apache-2.0
//
// Room-private: how the ranks of a host lie on it. Pure.
#pragma once

#include <vector>

#include "topology/topology.h"

namespace ccom {

using RankGroups = std::vector<std::vector<Rank>>;  // a partition of local ranks, ascending

// Ranks of one memory domain each, all of equal size; none if that is not so, not known, or one domain has them all.
RankGroups domains_of(const Topology& topology, int host);

// Ranks that share a last-level cache. Where it is not known which: of one memory domain, cut by how many CPUs share
// one. None if one cache serves all, or if most ranks have one of their own.
RankGroups cache_groups_of(const Topology& topology, int host);

}  // namespace ccom
