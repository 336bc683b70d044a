// SPDX-License-Identifier: Apache-2.0
//
// Findings about single hosts, and about differences between hosts.
#include <algorithm>
#include <map>

#include "tools/doctor/verdict.h"

namespace ccom::doctor {
namespace {

constexpr int64_t kMiB = 1 << 20;
// The default size of /dev/shm in a container.
constexpr int64_t kSmallShm = 64 * kMiB;
constexpr int64_t kClockMs = 5000;

// Instance types with an EFA network. A prefix stands for a family.
constexpr const char* kEfaInstances[] = {"trn1.32xlarge", "trn1n.", "trn2", "trn3", "p4d", "p5", "p6"};

bool has_efa_by_type(const std::string& type) {
  return std::ranges::any_of(kEfaInstances, [&type](const char* family) { return type.starts_with(family); });
}

struct Judge {
  const Report& report;
  std::vector<Finding>& findings;

  void add(Level level, int host, std::string text, std::string cure) {
    findings.push_back({level, {host}, std::move(text), std::move(cure)});
  }

  void efa(int host, const HostEntry& entry) {
    const RankReport& seen = entry.report;
    const bool has_provider = std::ranges::find(seen.providers, "efa") != seen.providers.end();
    if (seen.efa_devices > 0 && !has_provider) {
      add(Level::Trouble, host,
          entry.label + " has " + std::to_string(seen.efa_devices) +
              " EFA devices, but libfabric's efa provider does not offer them",
          "in a container, request vpc.amazonaws.com/efa to get /dev/infiniband; install EFA's libfabric");
    }
    if (seen.efa_devices > 0 && seen.locked_bytes >= 0) {
      add(Level::Trouble, host,
          entry.label + " lets a process lock " + std::to_string(seen.locked_bytes / 1024) +
              " KiB of memory; EFA must lock every buffer",
          "ulimit -l unlimited");
    }
    if (seen.efa_devices > 0 && seen.free_hugepages == 0) {
      add(Level::Note, host, entry.label + " has no free huge pages, which EFA's provider prefers",
          "request hugepages-2Mi in a pod, or set vm.nr_hugepages");
    }
    if (seen.efa_devices == 0 && has_efa_by_type(seen.instance_type)) {
      add(Level::Note, host, entry.label + " is a " + seen.instance_type + ", but none of its EFA devices is visible",
          "attach EFA interfaces to the instance; in a pod request vpc.amazonaws.com/efa");
    }
  }

  void limits(int host, const HostEntry& entry) {
    const RankReport& seen = entry.report;
    const auto ranks = static_cast<int64_t>(entry.ranks.size());
    if (seen.cpus > 0 && ranks > seen.cpus) {
      add(Level::Note, host,
          entry.label + "'s job has " + std::to_string(seen.cpus) + " cores for " + std::to_string(ranks) +
              " ranks, which have to share them",
          "start fewer ranks, or raise the CPU limit of the container");
    }
    const int64_t files = 64 + 4 * int64_t{report.nranks};
    if (seen.open_files >= 0 && seen.open_files < files) {
      add(Level::Trouble, host,
          entry.label + " lets a process open " + std::to_string(seen.open_files) + " files; connections to " +
              std::to_string(report.nranks) + " ranks may need " + std::to_string(files),
          "ulimit -n " + std::to_string(std::max<int64_t>(files, 4096)));
    }
    if (seen.shm_bytes >= 0 && seen.shm_bytes <= kSmallShm) {
      add(Level::Note, host,
          entry.label + " has " + std::to_string(seen.shm_bytes / kMiB) +
              " MiB in /dev/shm. ccom does not use it; PyTorch's data loaders and libfabric's shm provider do",
          "mount a larger one (in a pod an emptyDir with medium: Memory)");
    }
    if (seen.ptrace_scope > 0 && ranks > 1) {
      add(Level::Note, host,
          entry.label + " does not allow processes to read each other's memory (kernel.yama.ptrace_scope = " +
              std::to_string(seen.ptrace_scope) + "): large calls on ordinary buffers need an additional copy",
          "use ccomMemAlloc, or set kernel.yama.ptrace_scope to 0");
    }
    if (seen.available_bytes > 0 && seen.available_bytes < ranks * 256 * kMiB) {
      add(Level::Note, host,
          entry.label + " has " + std::to_string(seen.available_bytes / kMiB) + " MiB of free memory for " +
              std::to_string(ranks) + " ranks, which may use 256 MiB each",
          "lower CCOM_MAX_MEMORY");
    }
    if (!seen.libfabric.empty() && !seen.providers_failure.empty()) {
      add(Level::Note, host, entry.label + ": libfabric's providers are unknown: " + seen.providers_failure, "");
    }
  }

  // `value`: a property of a host. Hosts that differ from the majority are reported.
  template <typename Value>
  void compare(Level level, const char* what, Value value, const char* cure) {
    std::map<std::string, std::vector<int>> groups;
    for (size_t host = 0; host < report.hosts.size(); ++host) {
      groups[value(report.hosts[host])].push_back(static_cast<int>(host));
    }
    if (groups.size() < 2) return;
    const auto most = std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
    Finding finding{.level = level, .text = std::string(what) + " differ: ", .cure = cure};
    bool is_first = true;
    for (const auto& [text, hosts] : groups) {
      finding.text += (is_first ? "" : "; ") + (text.empty() ? "none" : text) + " on " + name_hosts(report, hosts);
      is_first = false;
      const bool concerned = text != most->first || groups.size() == report.hosts.size();
      if (concerned) finding.hosts.insert(finding.hosts.end(), hosts.begin(), hosts.end());
    }
    findings.push_back(std::move(finding));
  }

  void versions() {
    std::map<std::string, int> first;
    for (size_t rank = 0; rank < report.versions.size(); ++rank) {
      first.try_emplace(report.versions[rank], static_cast<int>(rank));
    }
    if (first.size() < 2) return;
    std::string text = "Ranks have different versions of ccom, which are incompatible: ";
    for (const auto& [version, rank] : first) {
      text += (version == first.begin()->first ? "" : ", ") + version + " (rank " + std::to_string(rank) + ")";
    }
    findings.push_back({Level::Trouble, {}, text, "install the same version everywhere"});
  }

  void clocks() {
    const auto [low, high] = std::ranges::minmax_element(report.hosts, {}, &HostEntry::clock_ms);
    if (low == report.hosts.end() || low->clock_ms == 0 || high->clock_ms - low->clock_ms <= kClockMs) return;
    const std::vector<int> hosts = {static_cast<int>(low - report.hosts.begin()),
                                    static_cast<int>(high - report.hosts.begin())};
    findings.push_back({Level::Note, hosts,
                        "The clocks of " + name_hosts(report, hosts) + " are " +
                            std::to_string((high->clock_ms - low->clock_ms) / 1000) +
                            " s apart: their logs cannot be compared",
                        "run chrony or another time service"});
  }
};

}  // namespace

void judge_hosts(const Report& report, std::vector<Finding>& findings) {
  Judge judge{report, findings};
  for (int host = 0; host < static_cast<int>(report.hosts.size()); ++host) {
    const HostEntry& entry = report.hosts[static_cast<size_t>(host)];
    if (!entry.report.filter_failure.empty()) {
      judge.add(Level::Trouble, host, entry.label + " has no data address: " + entry.report.filter_failure,
                "set CCOM_SOCKET_IFNAME to an interface with a route to the other hosts");
    }
    judge.efa(host, entry);
    judge.limits(host, entry);
  }
  judge.versions();
  judge.compare(
      Level::Trouble, "Numbers of EFA devices",
      [](const HostEntry& host) { return std::to_string(host.report.efa_devices); },
      "use the same network on every host of the job");
  judge.compare(
      Level::Note, "Versions of libfabric", [](const HostEntry& host) { return host.report.libfabric; },
      "transport ofi requires the same version everywhere");
  judge.compare(
      Level::Note, "Kernels", [](const HostEntry& host) { return host.report.kernel; }, "");
  judge.clocks();
}

}  // namespace ccom::doctor
