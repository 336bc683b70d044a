// SPDX-License-Identifier: Apache-2.0
//
// Runs this program again, or another one, as N ranks on this machine, like mpirun for a single host.
//
// Each child gets CCOM_RANK, CCOM_NRANKS and CCOM_URL, a file in a private directory that is removed at the end.
// Children die with the parent. The first child that fails ends the job: the others have `grace` to print their own
// errors. ^C reaches the children as members of the foreground process group; SIGTERM and SIGHUP are forwarded, and
// SIGINT if another process has sent it; SIGUSR1 and SIGUSR2 too, and do not end the job.
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
  // Another program, searched in PATH. It says nothing by its exit codes but that it has failed: the job has the first
  // one that is not 0, or 128 + signal. Its ranks also get CCOM_LOCAL_RANK and CCOM_LOCAL_NRANKS; rank 0 has the
  // standard input.
  std::string program{};
  bool tags_output = false;  // lines of the children's output begin with "[rank] "
};

constexpr std::chrono::hours kNoTimeout{24 * 365 * 10};

// Blocks until all children are gone. Returns the exit code that explains the failure best, or 128 + signal if a signal
// ended the job. Errors are printed to stderr. Fails with Usage in a process that is itself such a child. Call it from
// a single-threaded process.
int run_processes(const ProcessJob& job);

}  // namespace ccom::launch
