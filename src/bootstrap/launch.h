// SPDX-License-Identifier: Apache-2.0
//
// What the launcher's environment says: which rank this is, of how many, and where they could meet. Pure functions of a
// lookup. Launchers, the first that is present wins: CCOM_RANK and CCOM_NRANKS, torchrun, Open MPI's mpirun, PMI
// (MPICH, Intel MPI), Slurm's srun. Half of a launcher's variables is an error, not a reason to look at the next.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/types.h"

namespace ccom {

// As std::getenv: nullptr if unset. An empty value counts as unset.
using EnvironmentLookup = std::function<const char*(const char* name)>;

struct Launch {
  Rank rank = 0;
  int nranks = 0;
  Rank local_rank = -1;   // -1: unknown
  int local_nranks = -1;  // -1: unknown
  std::string launcher;   // "torchrun", for texts
};

// InvalidUsage if no launcher is present; a ConfigError that names the variables if they are partial or contradict.
Result<Launch> read_launch(const EnvironmentLookup& environment);

struct LaunchMeeting {
  std::string url;           // tcp:// or file://
  std::string generation{};  // differs between restarts of one job; goes into the secret
  // Not empty: the url's file lies in this folder of ours, to be made with mode 0700 and removed afterwards.
  std::string private_folder{};
  std::string origin;  // the variables that decided
};

// Where the ranks meet, the first that is present:
//   CCOM_URL                    as it is
//   NEURON_RT_ROOT_COMM_ID      tcp://host:port
//   MASTER_ADDR, MASTER_PORT    tcp://MASTER_ADDR:port with meeting_port() below, because torch's store has MASTER_PORT
//   mpirun or srun on one host  file://<TMPDIR or /tmp>/ccom-<user>-<hash of the job's id>/id
// Otherwise a ConfigError that says to set CCOM_URL.
Result<LaunchMeeting> read_launch_meeting(const EnvironmentLookup& environment, unsigned user);

// 21000 + (master_port + restarts) mod 2000, and 2000 more if that is master_port: outside the range from which Linux
// takes ports for outgoing connections, and a restarted job does not meet at a port that the old one may still hold.
// With a range of ports, likewise one of them.
uint16_t meeting_port(uint16_t master_port, uint64_t restarts, const PortRange& ports = {});

}  // namespace ccom
