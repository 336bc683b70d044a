// SPDX-License-Identifier: Apache-2.0
//
// Room-private: LearnedWays as JSON.
#pragma once

#include "topology/json_reader.h"
#include "topology/learned_ways.h"

namespace ccom {

std::string json_text(const LearnedWays& ways);
LearnedWays read_learned_ways(const JsonAt& at);

}  // namespace ccom
