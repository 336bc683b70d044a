// SPDX-License-Identifier: Apache-2.0
//
// Room-private: runs a program of the system for what it prints. No shell, and nothing of it may hold up a start: a
// program that hangs, chatters or leaves a child behind is ended.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace ccom {

// What `arguments[0]` writes to stdout when it is run with the others; it reads nothing, and what it says on stderr is
// dropped. An error if it cannot be started, ends with another code than 0, is killed, writes more than `most_bytes`,
// or has not ended by `deadline`: it and the children in its process group are killed then. Blocks until the program is
// gone, at most a second longer than the deadline.
Result<std::string> run_tool(const std::vector<std::string>& arguments, size_t most_bytes, Deadline deadline);

}  // namespace ccom
