// SPDX-License-Identifier: Apache-2.0
//
// Runs this program again as N ranks on this machine: what mpirun does for the case that needs no mpirun.
//
// Each child gets CCOM_RANK, CCOM_NRANKS and CCOM_URL, a file in a private folder that is removed at the end. Children
// die with the parent. The first child that fails ends the job: the others have `grace` to print texts of their own. ^C
// reaches the children as members of the foreground process group; SIGTERM and SIGHUP are handed on.
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

// Blocks until all children are gone. Gives the most telling child's exit code; 128 + signal if a signal ended the job.
// Texts go to stderr. Refuses, with Usage, in a process that is itself such a child. Call it from a process with one
// thread.
int run_processes(const ProcessJob& job);

}  // namespace ccom::launch
