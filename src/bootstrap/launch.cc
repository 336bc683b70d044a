// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launch.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "bootstrap/launch_environment.h"
#include "bootstrap/launch_hosts.h"

namespace ccom {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* nranks;
  const char* local_rank;    // nullptr: the launcher sets none
  const char* local_nranks;  // nullptr: the launcher sets none
  bool nranks_alone_is_a_launch = true;
};

// Checked before launchers that only number hosts.
constexpr Launcher kLaunchers[] = {
    {"ccom", "CCOM_RANK", "CCOM_NRANKS", "CCOM_LOCAL_RANK", "CCOM_LOCAL_NRANKS"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // A shell inside an allocation has SLURM_NTASKS without being a launched task. SLURM_NTASKS_PER_NODE is what the
    // allocation requested, not what a step has.
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, false},
};
constexpr const Launcher& kSlurm = kLaunchers[std::size(kLaunchers) - 1];
constexpr Launcher kNeuron = {"Neuron",
                              "NEURON_PJRT_PROCESS_INDEX",
                              "NEURON_PJRT_WORLD_SIZE",
                              "PJRT_LOCAL_PROCESS_RANK",
                              "PJRT_LOCAL_PROCESS_COUNT",
                              false};

Result<Launch> read(const EnvironmentLookup& environment, const Launcher& launcher) {
  const char* rank = get_variable(environment, launcher.rank);
  const char* nranks = get_variable(environment, launcher.nranks);
  if (rank == nullptr || nranks == nullptr) {
    return error(ErrorKey::HalfSet, "%s is set but %s is not", rank == nullptr ? launcher.nranks : launcher.rank,
                 rank == nullptr ? launcher.rank : launcher.nranks)
        .with_cure("set both or none");
  }
  constexpr uint64_t kMax = std::numeric_limits<int>::max();
  Launch launch{.launcher = launcher.name};
  CCOM_TRY_ASSIGN(const uint64_t rank_number, parse_variable(launcher.rank, rank, 0, kMax));
  CCOM_TRY_ASSIGN(const uint64_t nranks_number, parse_variable(launcher.nranks, nranks, 1, kMax));
  launch.rank = static_cast<Rank>(rank_number);
  launch.nranks = static_cast<int>(nranks_number);
  if (launch.rank >= launch.nranks) return contradiction(launcher.rank, launch.rank, launcher.nranks, launch.nranks);
  CCOM_TRY_ASSIGN(launch.local_rank, optional_number(environment, launcher.local_rank, 0));
  CCOM_TRY_ASSIGN(launch.local_nranks, optional_number(environment, launcher.local_nranks, 1));
  if (launch.local_nranks > launch.nranks) {
    return contradiction(launcher.local_nranks, launch.local_nranks, launcher.nranks, launch.nranks);
  }
  if (launch.local_nranks >= 0 && launch.local_rank >= launch.local_nranks) {
    return contradiction(launcher.local_rank, launch.local_rank, launcher.local_nranks, launch.local_nranks);
  }
  return launch;
}

// CCOM_NRANKS alone is used in pods of a Kubernetes job, which have an index already.
bool is_for_pods(const EnvironmentLookup& environment, const Launcher& launcher) {
  return &launcher == &kLaunchers[0] && get_variable(environment, launcher.rank) == nullptr &&
         get_variable(environment, "JOB_COMPLETION_INDEX") != nullptr;
}

// JAX on Neuron gives the number of processes as a list of device counts.
Result<Launch> read_neuron(const EnvironmentLookup& environment) {
  const char* devices = get_variable(environment, "NEURON_PJRT_PROCESSES_NUM_DEVICES");
  const std::string list = devices == nullptr ? "" : devices;
  const std::string count = std::to_string(std::ranges::count(list, ',') + 1);
  const EnvironmentLookup with_count = [&](const char* name) -> const char* {
    const char* value = environment(name);
    const bool is_wanted = value == nullptr && !list.empty() && std::string_view(name) == kNeuron.nranks;
    return is_wanted ? count.c_str() : value;
  };
  return read(with_count, kNeuron);
}

Result<Launch> read_slurm(const EnvironmentLookup& environment) {
  CCOM_TRY_ASSIGN(Launch launch, read(environment, kSlurm));
  const char* tasks = get_variable(environment, "SLURM_STEP_TASKS_PER_NODE");
  CCOM_TRY_ASSIGN(const int node, optional_number(environment, "SLURM_NODEID", 0));
  if (tasks == nullptr || node < 0) return launch;
  CCOM_TRY_ASSIGN(launch.local_nranks, tasks_of_node("SLURM_STEP_TASKS_PER_NODE", tasks, node));
  if (launch.local_rank < launch.local_nranks) return launch;
  return contradiction(kSlurm.local_rank, launch.local_rank, "SLURM_STEP_TASKS_PER_NODE", launch.local_nranks);
}

}  // namespace

Result<Launch> read_launch(const EnvironmentLookup& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const bool has_rank = get_variable(environment, launcher.rank) != nullptr;
    const bool has_nranks = get_variable(environment, launcher.nranks) != nullptr;
    if (is_for_pods(environment, launcher)) continue;
    if (&launcher == &kSlurm) {
      if (has_rank && is_slurm_step(environment)) return read_slurm(environment);
      continue;
    }
    if (has_rank || (has_nranks && launcher.nranks_alone_is_a_launch)) return read(environment, launcher);
  }
  CCOM_TRY_ASSIGN(const std::optional<Launch> of_hosts, read_host_launch(environment));
  if (of_hosts) return *of_hosts;
  if (get_variable(environment, kNeuron.rank) != nullptr) return read_neuron(environment);
  if (const char* rank = get_variable(environment, "PMIX_RANK")) {
    return error(Code::ConfigError, "PMIX_RANK=%s, but no launcher variable gives the number of ranks", rank)
        .with_cure("in every process, set CCOM_RANK=$PMIX_RANK and CCOM_NRANKS to the number of ranks");
  }
  if (get_variable(environment, kSlurm.rank) != nullptr) {
    return error(ErrorKey::NoRank, "this process has no rank: it is Slurm's batch script, not a task of srun")
        .with_cure("in the script, start the program with srun or mpirun");
  }
  return error(ErrorKey::NoRank, "this process has no rank: no launcher's variables are set")
      .with_cure("start with ccom-run, torchrun, mpirun or srun, or set CCOM_RANK and CCOM_NRANKS");
}

}  // namespace ccom
