// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launch_hosts.h"

#include <algorithm>
#include <limits>

#include "bootstrap/launch_environment.h"

namespace ccom {
namespace {

constexpr uint64_t kMax = std::numeric_limits<int>::max();

struct HostPlace {
  int host = 0;
  int nhosts = 0;
};

struct LocalPlace {
  int rank = 0;
  int nranks = 1;
};

// `name`, `nranks`: for launchers that set the number of ranks per host; otherwise nullptr and 0.
Result<LocalPlace> local_place(const EnvironmentLookup& environment, const char* name, int nranks) {
  CCOM_TRY_ASSIGN(const int own_nranks, optional_number(environment, "CCOM_LOCAL_NRANKS", 1));
  CCOM_TRY_ASSIGN(const int own_rank, optional_number(environment, "CCOM_LOCAL_RANK", 0));
  if (own_nranks > 0 || name == nullptr) name = "CCOM_LOCAL_NRANKS";
  LocalPlace place{.rank = own_rank, .nranks = own_nranks > 0 ? own_nranks : std::max(1, nranks)};
  if (place.rank < 0) {
    if (place.nranks > 1) {
      return error(Code::ConfigError, "%s=%d, but CCOM_LOCAL_RANK of this process is not set", name, place.nranks)
          .with_cure("start the program with torchrun, or once for each CCOM_LOCAL_RANK from 0");
    }
    place.rank = 0;
  }
  if (place.rank >= place.nranks) return contradiction("CCOM_LOCAL_RANK", place.rank, name, place.nranks);
  return place;
}

Result<std::optional<Launch>> combine(const char* launcher, HostPlace host, LocalPlace local) {
  const int64_t nranks = int64_t{host.nhosts} * local.nranks;
  if (nranks > static_cast<int64_t>(kMax)) {
    return error(Code::ConfigError, "%d hosts with %d ranks each exceed the maximum", host.nhosts, local.nranks);
  }
  return std::optional(Launch{.rank = host.host * local.nranks + local.rank,
                              .nranks = static_cast<int>(nranks),
                              .local_rank = local.rank,
                              .local_nranks = local.nranks,
                              .launcher = launcher});
}

// Both variables must be set; otherwise this is an elastic job, whose agents number the hosts.
Result<std::optional<Launch>> read_kubeflow(const EnvironmentLookup& environment) {
  const char* rank = get_variable(environment, "PET_NODE_RANK");
  const char* hosts = get_variable(environment, "PET_NNODES");
  if (rank == nullptr || hosts == nullptr) return std::optional<Launch>();
  HostPlace place;
  CCOM_TRY_ASSIGN(const uint64_t host, parse_variable("PET_NODE_RANK", rank, 0, kMax));
  CCOM_TRY_ASSIGN(const uint64_t nhosts, parse_variable("PET_NNODES", hosts, 1, kMax));
  place = {.host = static_cast<int>(host), .nhosts = static_cast<int>(nhosts)};
  if (place.host >= place.nhosts) return contradiction("PET_NODE_RANK", place.host, "PET_NNODES", place.nhosts);
  // The value may also be "auto" or "gpu", which only torchrun understands.
  const auto per_host = optional_number(environment, "PET_NPROC_PER_NODE", 1);
  const bool known = per_host && *per_host > 0;
  CCOM_TRY_ASSIGN(const LocalPlace local,
                  local_place(environment, known ? "PET_NPROC_PER_NODE" : nullptr, known ? *per_host : 0));
  return combine("Kubeflow Trainer", place, local);
}

// A pod knows only its own index; CCOM_NRANKS gives the total number of ranks.
Result<std::optional<Launch>> read_kubernetes(const EnvironmentLookup& environment) {
  const char* index = get_variable(environment, "JOB_COMPLETION_INDEX");
  CCOM_TRY_ASSIGN(const int nranks, optional_number(environment, "CCOM_NRANKS", 1));
  if (index == nullptr || nranks < 0) return std::optional<Launch>();
  CCOM_TRY_ASSIGN(const uint64_t pod, parse_variable("JOB_COMPLETION_INDEX", index, 0, kMax));
  CCOM_TRY_ASSIGN(const LocalPlace local, local_place(environment, nullptr, 0));
  if (nranks % local.nranks != 0) return contradiction("CCOM_LOCAL_NRANKS", local.nranks, "CCOM_NRANKS", nranks);
  const HostPlace place{.host = static_cast<int>(pod), .nhosts = nranks / local.nranks};
  if (place.host >= place.nhosts) {
    return error(Code::ConfigError, "JOB_COMPLETION_INDEX=%d is inconsistent with CCOM_NRANKS=%d and %d ranks per pod",
                 place.host, nranks, local.nranks);
  }
  return combine("Kubernetes", place, local);
}

Result<std::optional<Launch>> read_sagemaker(const EnvironmentLookup& environment) {
  const char* list = get_variable(environment, "SM_HOSTS");
  const char* self = get_variable(environment, "SM_CURRENT_HOST");
  if (list == nullptr || self == nullptr) return std::optional<Launch>();
  CCOM_TRY_ASSIGN(const std::vector<std::string> hosts, parse_host_names("SM_HOSTS", list));
  const auto found = std::ranges::find(hosts, self);
  if (found == hosts.end()) {
    return error(Code::ConfigError, "SM_CURRENT_HOST=%s is not in SM_HOSTS=%s", self, list);
  }
  CCOM_TRY_ASSIGN(const LocalPlace local, local_place(environment, nullptr, 0));
  return combine("SageMaker",
                 {.host = static_cast<int>(found - hosts.begin()), .nhosts = static_cast<int>(hosts.size())}, local);
}

}  // namespace

Result<std::optional<Launch>> read_host_launch(const EnvironmentLookup& environment) {
  for (auto* read : {read_kubeflow, read_kubernetes, read_sagemaker}) {
    CCOM_TRY_ASSIGN(std::optional<Launch> launch, read(environment));
    if (launch) return launch;
  }
  return std::optional<Launch>();
}

}  // namespace ccom
