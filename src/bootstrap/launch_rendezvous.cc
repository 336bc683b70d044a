// SPDX-License-Identifier: Apache-2.0
//
// The rendezvous address of a launched job; see launch.h.
#include <sys/socket.h>

#include <optional>

#include "base/secret.h"
#include "base/tcp_socket.h"
#include "bootstrap/launch_environment.h"

namespace ccom {
namespace {

constexpr uint16_t kFirstPort = 21000;
constexpr uint16_t kPorts = 2000;

// Not a rank of mpirun, whose daemons srun starts, on some of the job's nodes only.
bool is_slurm_task(const EnvironmentLookup& environment) {
  return get_variable(environment, "SLURM_PROCID") != nullptr && is_slurm_step(environment) &&
         get_variable(environment, "OMPI_COMM_WORLD_RANK") == nullptr;
}

// Run id and restart count of torchrun's elastic agent: keeps workers of an earlier generation out.
std::string read_generation(const EnvironmentLookup& environment) {
  const char* run = get_variable(environment, "TORCHELASTIC_RUN_ID");
  const char* restarts = get_variable(environment, "TORCHELASTIC_RESTART_COUNT");
  if (run == nullptr && restarts == nullptr) return "";
  return std::string("run ") + (run == nullptr ? "" : run) + " restart " + (restarts == nullptr ? "0" : restarts);
}

std::string tcp_url(const std::string& host, uint16_t port) { return "tcp://" + endpoint_text(host, port); }

// `port_name`: the port of torch's store.
Result<LaunchRendezvous> master_rendezvous(const EnvironmentLookup& environment, const char* address_name,
                                           const char* port_name) {
  const char* port = get_variable(environment, port_name);
  if (port == nullptr) return error(ErrorKey::HalfSet, "%s is set but %s is not", address_name, port_name);
  CCOM_TRY_ASSIGN(const uint64_t port_number, parse_variable(port_name, port, 1, 65535));
  const char* restarts = get_variable(environment, "TORCHELASTIC_RESTART_COUNT");
  uint64_t restart_number = 0;
  if (restarts != nullptr) {
    CCOM_TRY_ASSIGN(restart_number, parse_variable("TORCHELASTIC_RESTART_COUNT", restarts, 0, 1u << 30));
  }
  const char* range = get_variable(environment, "CCOM_PORT_RANGE");
  CCOM_TRY_ASSIGN(const PortRange ports, parse_port_range(range == nullptr ? "" : range));
  return LaunchRendezvous{.url = tcp_url(get_variable(environment, address_name),
                                         rendezvous_port(static_cast<uint16_t>(port_number), restart_number, ports)),
                          .origin = std::string(address_name) + " and " + port_name};
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

// Identifies a single-host job among all jobs of this host.
struct LocalJob {
  std::string id;
  std::string origin;
};

std::optional<LocalJob> open_mpi_id(const EnvironmentLookup& environment) {
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri"}) {
    if (const char* id = get_variable(environment, name)) return LocalJob{std::string("ompi ") + id, name};
  }
  return std::nullopt;
}

std::optional<LocalJob> open_mpi_job(const EnvironmentLookup& environment) {
  const char* all = get_variable(environment, "OMPI_COMM_WORLD_SIZE");
  const char* local = get_variable(environment, "OMPI_COMM_WORLD_LOCAL_SIZE");
  if (all == nullptr || local == nullptr || std::string_view(all) != local) return std::nullopt;
  return open_mpi_id(environment);
}

// Hydra's ranks may share nothing but the process at the other end of PMI_FD.
std::optional<LocalJob> pmi_job(const EnvironmentLookup& environment, const SocketCreator& creator) {
  const char* all = get_variable(environment, "PMI_SIZE");
  const char* local = get_variable(environment, "MPI_LOCALNRANKS");
  if (all == nullptr || local == nullptr || std::string_view(all) != local) return std::nullopt;
  for (const char* name : {"PMI_JOBID", "PMI_PORT"}) {
    if (const char* id = get_variable(environment, name)) return LocalJob{std::string("pmi ") + id, name};
  }
  const auto fd = optional_number(environment, "PMI_FD", 0);
  const int proxy = fd && *fd >= 0 ? creator(*fd) : 0;
  if (proxy > 0) return LocalJob{"pmi process " + std::to_string(proxy), "PMI_FD"};
  return std::nullopt;
}

// A job that is requeued counts its steps from 0 again.
std::string requeues(const EnvironmentLookup& environment) {
  const char* count = get_variable(environment, "SLURM_RESTART_COUNT");
  return count == nullptr ? "0" : count;
}

std::optional<LocalJob> slurm_job(const EnvironmentLookup& environment) {
  if (!is_slurm_task(environment)) return std::nullopt;
  const char* nodes = get_variable(environment, "SLURM_STEP_NUM_NODES");
  if (nodes == nullptr) nodes = get_variable(environment, "SLURM_NNODES");
  const char* job = get_variable(environment, "SLURM_JOB_ID");
  const char* step = get_variable(environment, "SLURM_STEP_ID");
  if (nodes == nullptr || std::string_view(nodes) != "1" || job == nullptr || step == nullptr) return std::nullopt;
  const std::string id = std::string("slurm ") + job + "." + step + " restart " + requeues(environment);
  return LocalJob{id, "SLURM_JOB_ID and SLURM_STEP_ID"};
}

LaunchRendezvous local_rendezvous(const EnvironmentLookup& environment, const LocalJob& job, unsigned user) {
  const char* base = get_variable(environment, "TMPDIR");
  const std::string folder =
      std::string(base == nullptr ? "/tmp" : base) + "/ccom-" + std::to_string(user) + "-" + hash_text(job.id);
  return {.url = "file://" + folder + "/id", .private_folder = folder, .origin = job.origin};
}

// Usually gives different ports to jobs that share a host.
uint16_t port_of_job(const std::string& id) {
  uint64_t number = 0;
  const Secret digest = Secret::from_text(id);
  for (const uint8_t byte : digest.bytes().first(sizeof number)) number = number << 8 | byte;
  return static_cast<uint16_t>(kFirstPort + number % kPorts);
}

// Slurm places task 0 on the first host of the step's list, except with a given distribution or a heterogeneous job.
// mpirun, which starts its ranks through Slurm's daemons, begins with the first host of the job. If rank 0 is
// elsewhere, it reports at once that it cannot listen at that address.
Result<std::optional<LaunchRendezvous>> slurm_rendezvous(const EnvironmentLookup& environment) {
  const char* distribution = get_variable(environment, "SLURM_DISTRIBUTION");
  const bool is_arbitrary = distribution != nullptr && std::string_view(distribution).starts_with("arbitrary");
  const bool has_parts = get_variable(environment, "SLURM_HET_SIZE") != nullptr;
  const char* job = get_variable(environment, "SLURM_JOB_ID");
  if (job == nullptr || is_arbitrary || has_parts) return std::optional<LaunchRendezvous>();
  const bool is_task = is_slurm_task(environment);
  const bool is_mpirun = get_variable(environment, "OMPI_COMM_WORLD_RANK") != nullptr ||
                         (get_variable(environment, "PMI_RANK") != nullptr && !is_task);
  const char* name = "SLURM_STEP_NODELIST";
  if (is_mpirun || get_variable(environment, name) == nullptr) name = "SLURM_JOB_NODELIST";
  const char* nodes = get_variable(environment, name);
  if (nodes == nullptr || (!is_task && !is_mpirun)) return std::optional<LaunchRendezvous>();
  CCOM_TRY_ASSIGN(const std::string host, first_node(name, nodes));
  const char* step = get_variable(environment, "SLURM_STEP_ID");
  const std::optional<LocalJob> mpi = open_mpi_id(environment);
  const std::string part = is_mpirun ? (mpi ? mpi->id : "mpirun") : step == nullptr ? "" : step;
  const std::string id = std::string("slurm ") + job + "." + part;
  return std::optional(LaunchRendezvous{
      .url = tcp_url(host, port_of_job(id)), .generation = id + " restart " + requeues(environment), .origin = name});
}

Result<LaunchRendezvous> sagemaker_rendezvous(const char* list) {
  CCOM_TRY_ASSIGN(const std::vector<std::string> hosts, parse_host_names("SM_HOSTS", list));
  return LaunchRendezvous{.url = tcp_url(hosts.front(), kFirstPort), .origin = "SM_HOSTS"};
}

Status no_rendezvous(const EnvironmentLookup& environment) {
  const char* how = "set CCOM_URL=";
  if (get_variable(environment, "OMPI_COMM_WORLD_RANK") != nullptr) how = "mpirun -x CCOM_SECRET_FILE -x CCOM_URL=";
  return error(Code::ConfigError,
               "the environment gives no rendezvous address: CCOM_URL, NEURON_RT_ROOT_COMM_ID and MASTER_ADDR are not "
               "set, "
               "and this is not an mpirun or srun job with known hosts")
      .with_cure(std::string(how) +
                 "tcp://HOST-OF-RANK-0:PORT with CCOM_SECRET_FILE, or CCOM_URL=file:///PATH on a file system that all "
                 "hosts share");
}

Result<LaunchRendezvous> find_rendezvous(const EnvironmentLookup& environment, unsigned user,
                                         const SocketCreator& creator) {
  if (const char* url = get_variable(environment, "CCOM_URL"))
    return LaunchRendezvous{.url = url, .origin = "CCOM_URL"};
  if (const char* root = get_variable(environment, "NEURON_RT_ROOT_COMM_ID")) {
    return LaunchRendezvous{.url = std::string("tcp://") + root, .origin = "NEURON_RT_ROOT_COMM_ID"};
  }
  if (get_variable(environment, "MASTER_ADDR") != nullptr) {
    return master_rendezvous(environment, "MASTER_ADDR", "MASTER_PORT");
  }
  for (const auto& job : {open_mpi_job(environment), pmi_job(environment, creator), slurm_job(environment)}) {
    if (job) return local_rendezvous(environment, *job, user);
  }
  CCOM_TRY_ASSIGN(std::optional<LaunchRendezvous> slurm, slurm_rendezvous(environment));
  if (slurm) return *std::move(slurm);
  if (get_variable(environment, "PET_MASTER_ADDR") != nullptr) {
    return master_rendezvous(environment, "PET_MASTER_ADDR", "PET_MASTER_PORT");
  }
  if (const char* hosts = get_variable(environment, "SM_HOSTS")) return sagemaker_rendezvous(hosts);
  return no_rendezvous(environment);
}

}  // namespace

int socket_creator(int fd) {
  ucred creator{};
  socklen_t length = sizeof creator;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &creator, &length) == 0 ? creator.pid : 0;
}

uint16_t rendezvous_port(uint16_t master_port, uint64_t restarts, const PortRange& ports) {
  if (!ports.is_any()) {
    const uint64_t size = static_cast<uint64_t>(ports.high - ports.low) + 1;
    const auto nth = [&](uint64_t n) { return static_cast<uint16_t>(ports.low + (master_port + restarts + n) % size); };
    return nth(0) == master_port ? nth(1) : nth(0);
  }
  const auto port = static_cast<uint16_t>(kFirstPort + (master_port + restarts) % kPorts);
  return port == master_port ? static_cast<uint16_t>(port + kPorts) : port;
}

Result<LaunchRendezvous> read_launch_rendezvous(const EnvironmentLookup& environment, unsigned user,
                                                const SocketCreator& creator) {
  CCOM_TRY_ASSIGN(LaunchRendezvous rendezvous, find_rendezvous(environment, user, creator));
  if (rendezvous.generation.empty()) rendezvous.generation = read_generation(environment);
  return rendezvous;
}

}  // namespace ccom
