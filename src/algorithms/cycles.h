// SPDX-License-Identifier: Apache-2.0
//
// Edge-disjoint Hamiltonian cycles of a torus, for Pattern::Rings.
#pragma once

#include <cstdint>
#include <vector>

namespace ccom {

// Orders of all members (the last dimension runs fastest) such that neighbours in an order, and its ends, are
// neighbours on the torus, no link being used twice. One cycle per dimension of three or more, so that all links are
// used, if all are at least three long and the search (deterministic, some milliseconds at most) finds them; else one
// cycle; none where there is none to be had. Dimensions of one do not count.
std::vector<std::vector<uint32_t>> hamiltonian_cycles(const std::vector<int>& dims);

}  // namespace ccom
