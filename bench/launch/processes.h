// SPDX-License-Identifier: Apache-2.0
//
// Runs this program again as N ranks on this machine, like mpirun for a single host.
//
// Each child gets CCOM_RANK, CCOM_NRANKS and CCOM_URL, a file in a private directory that is removed at the end.
// Children die with the parent. The first child that fails ends the job: the others have `grace` to print their own
// errors. ^C reaches the children as members of the foreground process group; SIGTERM and SIGHUP are forwarded.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bench/launch/outcome.h"

namespace ccom::launch {

struct ProcessJob {
  std::vector<std::string> arguments;  // Of each child, argv[0] first.
  int ranks = 1;
  std::chrono::milliseconds timeout{600'000};
  std::chrono::milliseconds grace{5'000};
};

// Blocks until all children are gone. Returns the exit code that explains the failure best, or 128 + signal if a signal
// ended the job. Errors are printed to stderr. Fails with Usage in a process that is itself such a child. Call it from
// a single-threaded process.
int run_processes(const ProcessJob& job);

}  // namespace ccom::launch
