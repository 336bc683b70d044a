// SPDX-License-Identifier: Apache-2.0
//
// Room-private: steps and places as text, as plan files have them and print.h prints them, read back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plan/program.h"

namespace ccom {

// print.h's form of a step:
//   send in[0..3] -> rank 1 channel 2     recv out[0] <- rank 1     recv-reduce out[0] = in[0] + rank 1
//   copy out[0] = in[0]                   reduce out[0] = tmp[0] + tmp[1]
// with ", complete" behind it, and ", block 3" where the step's block is not that of its run of input or output.
std::string plan_text(const Step& step);
std::optional<Step> step_from(std::string_view text);

// "3@in[0]"
std::string plan_text(const BlockAt& at);
std::optional<BlockAt> block_from(std::string_view text);

}  // namespace ccom
