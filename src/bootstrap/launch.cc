// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launch.h"

#include <charconv>
#include <limits>
#include <optional>

#include "base/secret.h"

namespace ccom {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* nranks;
  const char* local_rank;    // nullptr: has none
  const char* local_nranks;  // nullptr: has none
  bool nranks_alone_is_a_launch = true;
};

constexpr Launcher kLaunchers[] = {
    {"ccom", "CCOM_RANK", "CCOM_NRANKS", nullptr, nullptr},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    // A shell inside an allocation has SLURM_NTASKS without having been launched as a task.
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", false},
};

const char* get(const EnvironmentLookup& environment, const char* name) {
  const char* value = name == nullptr ? nullptr : environment(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

Result<uint64_t> parse(const char* name, const char* text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const std::string_view view(text);
  const auto [end, failure] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (failure == std::errc() && end == view.data() + view.size() && value >= low && value <= high) return value;
  return error(Code::ConfigError, "%s=%s: expected an integer from %llu to %llu", name, text,
               static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
}

// -1 if the variable is not there.
Result<int> optional_number(const EnvironmentLookup& environment, const char* name, uint64_t low) {
  const char* text = get(environment, name);
  if (text == nullptr) return -1;
  CCOM_TRY_ASSIGN(const uint64_t value, parse(name, text, low, std::numeric_limits<int>::max()));
  return static_cast<int>(value);
}

Status contradiction(const char* name, int value, const char* limit_name, int limit) {
  return error(Code::ConfigError, "%s=%d does not fit to %s=%d", name, value, limit_name, limit);
}

Result<Launch> read(const EnvironmentLookup& environment, const Launcher& launcher) {
  const char* rank = get(environment, launcher.rank);
  const char* nranks = get(environment, launcher.nranks);
  if (rank == nullptr || nranks == nullptr) {
    return error(Code::ConfigError, "%s is set but %s is not", rank == nullptr ? launcher.nranks : launcher.rank,
                 rank == nullptr ? launcher.rank : launcher.nranks)
        .with_cure("set both or none");
  }
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  Launch launch{.launcher = launcher.name};
  CCOM_TRY_ASSIGN(const uint64_t rank_number, parse(launcher.rank, rank, 0, kMost));
  CCOM_TRY_ASSIGN(const uint64_t nranks_number, parse(launcher.nranks, nranks, 1, kMost));
  launch.rank = static_cast<Rank>(rank_number);
  launch.nranks = static_cast<int>(nranks_number);
  if (launch.rank >= launch.nranks) return contradiction(launcher.rank, launch.rank, launcher.nranks, launch.nranks);
  CCOM_TRY_ASSIGN(launch.local_rank, optional_number(environment, launcher.local_rank, 0));
  CCOM_TRY_ASSIGN(launch.local_nranks, optional_number(environment, launcher.local_nranks, 1));
  // Slurm gives what the allocation asked for, which a smaller step does not reach.
  if (launch.local_nranks > launch.nranks && !launcher.nranks_alone_is_a_launch) launch.local_nranks = -1;
  if (launch.local_nranks > launch.nranks) {
    return contradiction(launcher.local_nranks, launch.local_nranks, launcher.nranks, launch.nranks);
  }
  if (launch.local_nranks >= 0 && launch.local_rank >= launch.local_nranks) {
    return contradiction(launcher.local_rank, launch.local_rank, launcher.local_nranks, launch.local_nranks);
  }
  return launch;
}

// Run id and restart count of torchrun's elastic agent: a worker of an old generation must not get in.
std::string read_generation(const EnvironmentLookup& environment) {
  const char* run = get(environment, "TORCHELASTIC_RUN_ID");
  const char* restarts = get(environment, "TORCHELASTIC_RESTART_COUNT");
  if (run == nullptr && restarts == nullptr) return "";
  return std::string("run ") + (run == nullptr ? "" : run) + " restart " + (restarts == nullptr ? "0" : restarts);
}

Result<LaunchMeeting> torch_meeting(const EnvironmentLookup& environment, const char* address) {
  const char* port = get(environment, "MASTER_PORT");
  if (port == nullptr) return error(Code::ConfigError, "MASTER_ADDR is set but MASTER_PORT is not");
  CCOM_TRY_ASSIGN(const uint64_t port_number, parse("MASTER_PORT", port, 1, 65535));
  const char* restarts = get(environment, "TORCHELASTIC_RESTART_COUNT");
  uint64_t restart_number = 0;
  if (restarts != nullptr) {
    CCOM_TRY_ASSIGN(restart_number, parse("TORCHELASTIC_RESTART_COUNT", restarts, 0, 1u << 30));
  }
  const std::string host = std::string_view(address).find(':') == std::string_view::npos
                               ? std::string(address)
                               : "[" + std::string(address) + "]";
  const char* range = get(environment, "CCOM_PORT_RANGE");
  CCOM_TRY_ASSIGN(const PortRange ports, parse_port_range(range == nullptr ? "" : range));
  const uint16_t chosen = meeting_port(static_cast<uint16_t>(port_number), restart_number, ports);
  return LaunchMeeting{.url = "tcp://" + host + ":" + std::to_string(chosen), .origin = "MASTER_ADDR and MASTER_PORT"};
}

std::string hash_text(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  const Secret digest = Secret::from_text(text);
  std::string hex;
  for (const uint8_t byte : digest.bytes().first(8)) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

// What tells this job on this host from every other, and whether it has no other host.
struct LocalJob {
  std::string id;
  std::string origin;
};

std::optional<LocalJob> open_mpi_job(const EnvironmentLookup& environment) {
  const char* all = get(environment, "OMPI_COMM_WORLD_SIZE");
  const char* local = get(environment, "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (all == nullptr || local == nullptr || std::string_view(all) != local) return std::nullopt;
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"}) {
    if (const char* id = get(environment, name)) return LocalJob{std::string("ompi ") + id, name};
  }
  return std::nullopt;
}

std::optional<LocalJob> pmi_job(const EnvironmentLookup& environment) {
  const char* all = get(environment, "PMI_SIZE");
  const char* local = get(environment, "MPI_LOCALNRANKS");
  if (all == nullptr || local == nullptr || std::string_view(all) != local) return std::nullopt;
  for (const char* name : {"PMI_JOBID", "PMI_PORT"}) {
    if (const char* id = get(environment, name)) return LocalJob{std::string("pmi ") + id, name};
  }
  return std::nullopt;
}

std::optional<LocalJob> slurm_job(const EnvironmentLookup& environment) {
  if (get(environment, "SLURM_PROCID") == nullptr) return std::nullopt;
  const char* nodes = get(environment, "SLURM_STEP_NUM_NODES");
  if (nodes == nullptr) nodes = get(environment, "SLURM_NNODES");
  const char* job = get(environment, "SLURM_JOB_ID");
  const char* step = get(environment, "SLURM_STEP_ID");
  if (nodes == nullptr || std::string_view(nodes) != "1" || job == nullptr || step == nullptr) return std::nullopt;
  return LocalJob{std::string("slurm ") + job + "." + step, "SLURM_JOB_ID and SLURM_STEP_ID"};
}

LaunchMeeting local_meeting(const EnvironmentLookup& environment, const LocalJob& job, unsigned user) {
  const char* base = get(environment, "TMPDIR");
  const std::string folder =
      std::string(base == nullptr ? "/tmp" : base) + "/ccom-" + std::to_string(user) + "-" + hash_text(job.id);
  return {.url = "file://" + folder + "/id", .private_folder = folder, .origin = job.origin};
}

Result<LaunchMeeting> find_meeting(const EnvironmentLookup& environment, unsigned user) {
  if (const char* url = get(environment, "CCOM_URL")) return LaunchMeeting{.url = url, .origin = "CCOM_URL"};
  if (const char* root = get(environment, "NEURON_RT_ROOT_COMM_ID")) {
    return LaunchMeeting{.url = std::string("tcp://") + root, .origin = "NEURON_RT_ROOT_COMM_ID"};
  }
  if (const char* address = get(environment, "MASTER_ADDR")) return torch_meeting(environment, address);
  for (const auto& job : {open_mpi_job(environment), pmi_job(environment), slurm_job(environment)}) {
    if (job) return local_meeting(environment, *job, user);
  }
  return error(Code::ConfigError,
               "the environment names no meeting point: CCOM_URL, NEURON_RT_ROOT_COMM_ID and MASTER_ADDR are not set, "
               "and "
               "this is not a job of mpirun or srun that is known to be on one host")
      .with_cure(
          "set CCOM_URL=tcp://HOST-OF-RANK-0:PORT with CCOM_SECRET_FILE, or CCOM_URL=file:///PATH on a file system "
          "that all hosts share");
}

}  // namespace

uint16_t meeting_port(uint16_t master_port, uint64_t restarts, const PortRange& ports) {
  if (!ports.is_any()) {
    const uint64_t size = static_cast<uint64_t>(ports.high - ports.low) + 1;
    const auto nth = [&](uint64_t n) { return static_cast<uint16_t>(ports.low + (master_port + restarts + n) % size); };
    return nth(0) == master_port ? nth(1) : nth(0);
  }
  const auto port = static_cast<uint16_t>(21000 + (master_port + restarts) % 2000);
  return port == master_port ? static_cast<uint16_t>(port + 2000) : port;
}

Result<Launch> read_launch(const EnvironmentLookup& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const bool has_rank = get(environment, launcher.rank) != nullptr;
    const bool has_nranks = get(environment, launcher.nranks) != nullptr;
    if (has_rank || (has_nranks && launcher.nranks_alone_is_a_launch)) return read(environment, launcher);
  }
  return error(Code::InvalidUsage, "no launcher has set this process's rank")
      .with_cure("start with torchrun, mpirun or srun, or set CCOM_RANK and CCOM_NRANKS");
}

Result<LaunchMeeting> read_launch_meeting(const EnvironmentLookup& environment, unsigned user) {
  CCOM_TRY_ASSIGN(LaunchMeeting meeting, find_meeting(environment, user));
  meeting.generation = read_generation(environment);
  return meeting;
}

}  // namespace ccom
