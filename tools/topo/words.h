// SPDX-License-Identifier: Apache-2.0
//
// Text fragments for display.
#pragma once

#include <string>
#include <vector>

#include "topology/topology.h"

namespace ccom {

// 3 -> "3 ranks", 1 -> "1 rank".
std::string counted(size_t count, const char* noun);
std::string counted(int count, const char* noun);

// Ascending numbers as "0-3,8".
std::string ranges(const std::vector<int>& numbers);

// "1.5 us, 51.54 GB/s"
std::string text_of(const LinkSpeed& speed);

// "torus 4x4"
std::string shape_text(const Fabric& fabric);

// "a, b, c"
std::string listed(const std::vector<std::string>& words, const char* separator);

// The ranks of a host by device of its imposed fabric.
std::vector<std::vector<Rank>> ranks_by_device(const Topology& topology, int host);

}  // namespace ccom
