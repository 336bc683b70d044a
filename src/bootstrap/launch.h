// SPDX-License-Identifier: Apache-2.0
//
// What the launcher's environment says: which rank this is, of how many, and where they could meet. Pure functions of a
// lookup, but for maker_of_socket. Launchers, the first that is present wins:
//
//   CCOM_RANK, CCOM_NRANKS                     own; with CCOM_LOCAL_RANK and CCOM_LOCAL_NRANKS
//   RANK, WORLD_SIZE                           torchrun, and what sets the same for pods of one rank
//   OMPI_COMM_WORLD_RANK, ..._SIZE             Open MPI's mpirun
//   PMI_RANK, PMI_SIZE                         MPICH, Intel MPI
//   SLURM_PROCID, SLURM_NTASKS                 srun
//   PET_NODE_RANK, PET_NNODES                  Kubeflow Trainer: hosts, see below
//   JOB_COMPLETION_INDEX, CCOM_NRANKS          pods of a Kubernetes Indexed Job or JobSet: hosts
//   SM_CURRENT_HOST, SM_HOSTS                  SageMaker: hosts
//   NEURON_PJRT_PROCESS_INDEX, ..._WORLD_SIZE  processes of PJRT on Neuron
//
// Where a launcher knows hosts only, rank = host * CCOM_LOCAL_NRANKS + CCOM_LOCAL_RANK, by default one rank per host.
// Half of a launcher's variables is an error, not a reason to look at the next.
#pragma once

#include <functional>
#include <string>
#include <vector>

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

// The process that made the socket `fd`, 0 if that cannot be known.
using SocketMaker = std::function<int(int fd)>;
int maker_of_socket(int fd);

// Where the ranks meet, the first that is present:
//   CCOM_URL                    as it is
//   NEURON_RT_ROOT_COMM_ID      tcp://host:port
//   MASTER_ADDR, MASTER_PORT    tcp://MASTER_ADDR:port with meeting_port() below, because torch's store has MASTER_PORT
//   mpirun or srun on one host  file://<TMPDIR or /tmp>/ccom-<user>-<hash of the job's id>/id
//   srun on several hosts, or mpirun inside an allocation of Slurm's: tcp://, the first host of the step's or job's
//   list PET_MASTER_ADDR, ..._PORT   as MASTER_ADDR SM_HOSTS                    tcp://, the first host
// Otherwise a ConfigError that says to set CCOM_URL. A tcp:// of several hosts needs the job's secret besides (url.h).
Result<LaunchMeeting> read_launch_meeting(const EnvironmentLookup& environment, unsigned user,
                                          const SocketMaker& maker = maker_of_socket);

// 21000 + (master_port + restarts) mod 2000, and 2000 more if that is master_port: outside the range from which Linux
// takes ports for outgoing connections, and a restarted job does not meet at a port that the old one may still hold.
// With a range of ports, likewise one of them.
uint16_t meeting_port(uint16_t master_port, uint64_t restarts, const PortRange& ports = {});

}  // namespace ccom
