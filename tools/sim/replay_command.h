// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace ccom::simtool {

// ccom-sim replay: the words after that. Returns the program's exit code.
int run_replay_command(const std::vector<std::string>& words);

}  // namespace ccom::simtool
