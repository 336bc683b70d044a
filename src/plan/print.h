// SPDX-License-Identifier: Apache-2.0
//
// Plans as text: for people, golden files and error texts.
#pragma once

#include <string>

#include "plan/program.h"

namespace ccom {

std::string to_text(const Step& step);
// A heading and one numbered line per step.
std::string to_text(const Plan& plan);
// A heading, and for each stage who gives and gets what; lists of many blocks are shortened.
std::string to_text(const Program& program);
std::string to_text(const Part& part);
// "host reduce_scatter (two_shot), sums": without its groups.
std::string to_text(const Stage& stage);
// "two_shot, streamed": schemes by what is reached, and in which manner. Different for all ways of a task
// (node_ways()).
std::string to_text(const NodeChoice& node);
// The same of a call in which ranks reached those buffers: "two_shot, streamed; readable".
std::string to_text(const NodeChoice& node, const Reach& reach);

}  // namespace ccom
