// SPDX-License-Identifier: Apache-2.0
#include "setup/host_network.h"

#include <algorithm>
#include <cmath>

namespace ccom {
namespace {

bool names_a_list(const std::string& filter) {
  const size_t first = filter.find_first_not_of(" \t");
  return first != std::string::npos && filter[first] != '^';
}

// An interface with several addresses carries no more for it.
std::vector<std::string> one_of_each(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names, addresses;
  for (const Interface& interface : interfaces) {
    if (std::ranges::find(names, interface.name) != names.end()) continue;
    names.push_back(interface.name);
    addresses.push_back(interface.address);
  }
  return addresses;
}

// Enough that their windows together hold what is on its way to the farthest rack until the acknowledgements are back.
// A window is limited by net.ipv4.tcp_wmem and tcp_rmem, to about half of 4 and 6 MiB unless somebody has changed them.
int streams_between_racks(const Topology& topology, int most) {
  constexpr double kWindowBytes = 2 << 20;
  return static_cast<int>(std::clamp(std::ceil(2 * topology.bytes_between_racks() / kWindowBytes), 1.0, double(most)));
}

}  // namespace

Result<HostNetwork> choose_network(const CommConfig& config, const Topology& topology,
                                   const std::vector<Interface>& all) {
  const std::string& wanted = config.tcp_rails.empty() ? config.ifname : config.tcp_rails;
  CCOM_TRY_ASSIGN(const std::vector<Interface> chosen, choose_interfaces(config.ifname, all));
  auto rails = choose_interfaces(wanted, all);
  if (!rails) return std::move(rails).error().in("CCOM_TCP_RAILS");
  HostNetwork network{.address = chosen.front().address,
                      .rails = one_of_each(*rails),
                      .tcp_streams = config.tcp_streams > 0 ? config.tcp_streams : automatic_tcp_streams(topology)};
  if (!names_a_list(wanted)) network.rails.resize(1);
  return network;
}

// EC2 gives one connection 5 Gbit/s, or 10 within a cluster placement group, whatever the interface carries. Elsewhere
// one connection fills what its core can, unless hosts are far apart.
int automatic_tcp_streams(const Topology& topology) {
  constexpr int kOnEna = 8, kMost = 16;
  const Host& first = topology.hosts.front();
  const bool is_one_machine = std::ranges::all_of(topology.hosts, [&first](const Host& host) {
    return &host == &first || (!host.machine.empty() && host.machine == first.machine);
  });
  if (is_one_machine) return 1;
  const auto has_ena = [](const Host& host) {
    return std::ranges::any_of(host.nics, [](const Nic& nic) { return nic.kind == "ena"; });
  };
  return std::max(std::ranges::any_of(topology.hosts, has_ena) ? kOnEna : 1, streams_between_racks(topology, kMost));
}

}  // namespace ccom
