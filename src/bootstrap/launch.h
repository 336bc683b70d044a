// SPDX-License-Identifier: Apache-2.0
//
// The launcher's environment: this process's rank, the number of ranks, and the rendezvous address. Pure functions of a
// lookup, except socket_creator(). The first launcher found applies:
//
//   CCOM_RANK, CCOM_NRANKS                     ccom; with CCOM_LOCAL_RANK and CCOM_LOCAL_NRANKS
//   RANK, WORLD_SIZE                           torchrun, and launchers that set the same for single-rank pods
//   OMPI_COMM_WORLD_RANK, ..._SIZE             Open MPI's mpirun
//   PMI_RANK, PMI_SIZE                         MPICH, Intel MPI
//   SLURM_PROCID, SLURM_NTASKS                 srun
//   PET_NODE_RANK, PET_NNODES                  Kubeflow Trainer: hosts, see below
//   JOB_COMPLETION_INDEX, CCOM_NRANKS          pods of a Kubernetes Indexed Job or JobSet: hosts
//   SM_CURRENT_HOST, SM_HOSTS                  SageMaker: hosts
//   NEURON_PJRT_PROCESS_INDEX, ..._WORLD_SIZE  processes of PJRT on Neuron
//
// For launchers that only number hosts, rank = host * CCOM_LOCAL_NRANKS + CCOM_LOCAL_RANK, by default one rank per
// host. An incomplete set of a launcher's variables is an error; the next launcher is not tried.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/types.h"

namespace ccom {

// Like std::getenv: nullptr if unset. An empty value counts as unset.
using EnvironmentLookup = std::function<const char*(const char* name)>;

struct Launch {
  Rank rank = 0;
  int nranks = 0;
  Rank local_rank = -1;   // -1: unknown
  int local_nranks = -1;  // -1: unknown
  std::string launcher;   // "torchrun", for error texts
};

// InvalidUsage without a launcher; ConfigError naming the variables if they are incomplete or inconsistent.
Result<Launch> read_launch(const EnvironmentLookup& environment);

struct LaunchRendezvous {
  std::string url;           // tcp:// or file://
  std::string generation{};  // differs between restarts of one job; goes into the secret
  // If not empty: the directory of the url's file, to be created with mode 0700 and removed afterwards.
  std::string private_folder{};
  std::string origin;  // the variables that determined it
};

// The process that created the socket `fd`, 0 if unknown.
using SocketCreator = std::function<int(int fd)>;
int socket_creator(int fd);

// The rendezvous address, from the first of these that is set:
//   CCOM_URL                    taken literally
//   NEURON_RT_ROOT_COMM_ID      tcp://host:port
//   MASTER_ADDR, MASTER_PORT    tcp://MASTER_ADDR:port with rendezvous_port(), because torch's store uses MASTER_PORT
//   mpirun or srun on one host  file://<TMPDIR or /tmp>/ccom-<user>-<hash of the job's id>/id
//   srun on several hosts, or   tcp://, the first host of the step's or job's list
//     mpirun inside a Slurm job
//   PET_MASTER_ADDR, ..._PORT   as MASTER_ADDR
//   SM_HOSTS                    tcp://, the first host
// Otherwise a ConfigError that recommends CCOM_URL. tcp:// across hosts additionally needs the job's secret (url.h).
Result<LaunchRendezvous> read_launch_rendezvous(const EnvironmentLookup& environment, unsigned user,
                                                const SocketCreator& creator = socket_creator);

// 21000 + (master_port + restarts) mod 2000, and 2000 more if that is master_port: outside Linux's ephemeral port
// range, and different after a restart, when the old job may still hold its port. With a port range, likewise a port of
// it.
uint16_t rendezvous_port(uint16_t master_port, uint64_t restarts, const PortRange& ports = {});

}  // namespace ccom
