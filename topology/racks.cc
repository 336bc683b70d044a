// SPDX-License-Identifier: Apache-2.0
//
// Networks of two levels: hosts in racks, whose uplinks carry a part of what the hosts' cards do.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {

std::vector<int> Topology::rack_numbers() const {
  std::map<std::string_view, int> numbers;
  std::vector<int> racks;
  racks.reserve(hosts.size());
  for (const Host& host : hosts) {
    const auto next = static_cast<int>(numbers.size());
    racks.push_back(host.rack.name.empty() ? -1 : numbers.try_emplace(host.rack.name, next).first->second);
  }
  return racks;
}

std::vector<RackUplinks> Topology::rack_uplinks() const {
  std::vector<RackUplinks> uplinks;
  const std::vector<int> racks = rack_numbers();
  for (size_t host = 0; host < racks.size(); ++host) {
    if (racks[host] < 0) continue;
    const auto rack = static_cast<size_t>(racks[host]);
    if (rack >= uplinks.size()) uplinks.resize(rack + 1);
    uplinks[rack].cards_bytes_per_second += host_bytes_per_second(static_cast<int>(host));
    uplinks[rack].taper = std::max(uplinks[rack].taper, hosts[host].rack.taper);
  }
  return uplinks;
}

double Topology::host_bytes_per_second(int host) const {
  const auto& imposed = hosts[static_cast<size_t>(host)].imposed;
  if (!imposed || imposed->uplinks.empty()) return network.bytes_per_second;
  double sum = 0;
  for (const Uplink& uplink : imposed->uplinks) sum += uplink.speed.bytes_per_second;
  return sum;
}

std::optional<double> taper_from(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double taper = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || !(taper >= 1 && taper <= kMostTaper)) return std::nullopt;
  return taper;
}

Result<Rack> rack_from(std::string_view text) {
  constexpr const char* kCure = "write CCOM_HOST_RACK=NAME or NAME/TAPER, as row3/4";
  const size_t slash = text.rfind('/');
  Rack rack{.name = std::string(text.substr(0, slash))};
  const std::string whole(text);
  if (rack.name.empty())
    return error(Code::ConfigError, "CCOM_HOST_RACK=%s names no rack", whole.c_str()).with_cure(kCure);
  if (slash == std::string_view::npos) return rack;
  const std::optional<double> taper = taper_from(text.substr(slash + 1));
  if (!taper) {
    return error(Code::ConfigError, "CCOM_HOST_RACK=%s: the taper behind the / is not from 1 to %.0f", whole.c_str(),
                 kMostTaper)
        .with_cure(kCure);
  }
  rack.taper = *taper;
  return rack;
}

}  // namespace ccom
