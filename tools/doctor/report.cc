// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/report.h"

#include <algorithm>

namespace ccom::doctor {

std::vector<HostEntry> group_hosts(const std::vector<RankReport>& ranks) {
  std::vector<HostEntry> hosts;
  for (const RankReport& report : ranks) {
    const auto found =
        std::ranges::find(hosts, report.host_id, [](const HostEntry& host) { return host.report.host_id; });
    if (found != hosts.end()) {
      found->ranks.push_back(report.rank);
    } else {
      hosts.push_back({.label = report.host_name, .ranks = {report.rank}, .report = report});
    }
  }
  const std::vector<HostEntry> named = hosts;
  for (HostEntry& host : hosts) {
    const auto alike =
        std::ranges::count(named, host.report.host_name, [](const HostEntry& other) { return other.report.host_name; });
    if (alike > 1) host.label += " (rank " + std::to_string(host.ranks.front()) + ")";
  }
  return hosts;
}

}  // namespace ccom::doctor
