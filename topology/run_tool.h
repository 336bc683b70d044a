// SPDX-License-Identifier: Apache-2.0
//
// Room-private: runs a system program for its output. No shell; a program that hangs, prints too much or leaves a child
// behind is killed, so that it cannot delay start-up.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace ccom {

// The stdout of `arguments[0]` run with the other arguments; stdin is empty and stderr is discarded. An error if it
// cannot be started, exits with a code other than 0, is killed, writes more than `most_bytes`, or has not ended by
// `deadline`; then it and its process group are killed. Blocks until the program has ended, at most a second beyond the
// deadline.
Result<std::string> run_tool(const std::vector<std::string>& arguments, size_t most_bytes, Deadline deadline);

}  // namespace ccom
