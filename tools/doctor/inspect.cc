// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/inspect.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/descriptor.h"
#include "base/network.h"
#include "base/options.h"
#include "base/version.h"
#include "bootstrap/interface_filter.h"
#include "bootstrap/url.h"
#include "tools/doctor/providers.h"
#include "topology/topology.h"

namespace ccom::doctor {
namespace {

constexpr std::chrono::milliseconds kProvidersLimit{8000};
constexpr size_t kMostAddresses = 8;

int mtu_of(const std::string& interface) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  return socket.is_open() && ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

int64_t soft_limit(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return -1;
  return limit.rlim_cur == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit.rlim_cur);
}

int64_t number_in(const std::string& path, int64_t otherwise) {
  std::ifstream file(path);
  int64_t value = otherwise;
  return file >> value ? value : otherwise;
}

// "HugePages_Free:  17" of proc/meminfo; 0 if missing.
int64_t memory_line(const std::string& root, const std::string& key) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string word; file >> word;) {
    int64_t value = 0;
    if (word == key + ":" && file >> value) return value;
  }
  return 0;
}

void see_limits(const std::string& root, RankReport& report) {
  report.open_files = soft_limit(RLIMIT_NOFILE);
  report.locked_bytes = soft_limit(RLIMIT_MEMLOCK);
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) report.shm_bytes = static_cast<int64_t>(shm.f_blocks * shm.f_frsize);
  report.ptrace_scope = static_cast<int>(number_in(root + "/proc/sys/kernel/yama/ptrace_scope", 0));
  report.free_hugepages = memory_line(root, "HugePages_Free");
  report.available_bytes = memory_line(root, "MemAvailable") * 1024;
}

// By default ccom uses one interface; of several that are listed it may use all.
void see_interfaces(const std::vector<Nic>& nics, RankReport& report) {
  const std::vector<Interface> all = list_interfaces();
  for (const Interface& interface : all) report.interfaces.push_back(interface.name + " " + interface.address);
  const auto filter = read_interface_filter(process_environment, all);
  if (!filter) {
    report.filter_failure = filter.error().message();
    return;
  }
  report.filter = filter->text;
  report.filter_origin = filter->origin;
  const auto chosen = choose_interfaces(filter->text, all);
  if (!chosen) {
    report.filter_failure = chosen.error().message();
    return;
  }
  const bool takes_all = !filter->text.empty() && !filter->text.starts_with('^');
  for (const Interface& interface : *chosen) {
    const bool is_known = std::ranges::find(report.addresses, interface.name, &DataAddress::interface) !=
                          report.addresses.end();  // by its first address, IPv4 if it has one
    if (is_known || report.addresses.size() == (takes_all ? kMostAddresses : 1)) continue;
    const auto nic = std::ranges::find(nics, interface.name, &Nic::name);
    report.addresses.push_back({.interface = interface.name,
                                .address = interface.address,
                                .mtu = mtu_of(interface.name),
                                .bytes_per_second = nic == nics.end() ? 0 : nic->bytes_per_second});
  }
}

}  // namespace

RankReport inspect_host(int rank, const std::string& root) {
  RankReport report{.rank = rank};
  report.ccom_version = kVersion;
  utsname system{};
  if (::uname(&system) == 0) report.kernel = std::string(system.sysname) + " " + system.release;
  std::vector<Nic> nics;
  const std::string given_id = option("CCOM_HOSTID");
  if (const auto host = discover(root, given_id)) {
    report.host_id = host->id;
    report.host_name = given_id.empty() ? host->name : given_id;
    report.instance_type = host->instance_type;
    report.cpus = host->cpus;
    nics = host->nics;
  }
  report.efa_devices = static_cast<int>(std::ranges::count(nics, "efa", &Nic::kind));
  see_limits(root, report);
  see_interfaces(nics, report);
  Providers providers = list_providers(kProvidersLimit);
  report.libfabric = std::move(providers.version);
  report.providers = std::move(providers.names);
  report.providers_failure = std::move(providers.failure);
  return report;
}

}  // namespace ccom::doctor
