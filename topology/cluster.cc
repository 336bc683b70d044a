// SPDX-License-Identifier: Apache-2.0
//
// Whole machines by name: hosts of a fabric or without one, or a file.
#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "topology/shapes.h"
#include "topology/sysfs_root.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr int kMaxHosts = 1 << 16;
constexpr int kMaxClusterRanks = 1 << 20;
constexpr std::string_view kPlainHost = "host:";

// Removes what stands behind the last `separator`, if that is there.
std::optional<std::string_view> cut_off(std::string_view& text, char separator) {
  const size_t at = text.rfind(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view tail = text.substr(at + 1);
  text = text.substr(0, at);
  return tail;
}

// Hosts that are alike: how many, with how many ranks, of which the first `per_device` sit on device 0.
struct Part {
  Host host;
  int64_t hosts = 1;
  int64_t ranks = 1;
  int64_t per_device = 0;  // 0: no fabric
};

// "host:RANKS", with "/CPUS" and "@SPEED" behind it if they are said.
Result<Part> plain_part(std::string_view name, std::string_view text) {
  Part part;
  if (const auto speed = cut_off(text, '@')) {
    const double bytes_per_second = speed_from(*speed);
    if (bytes_per_second == 0)
      return wrong_topology(name, "behind the @ stands the network's speed, as 25Gbit or 500Mbit");
    part.host.nics.push_back({.name = "eth0", .kind = "ethernet", .bytes_per_second = bytes_per_second});
  }
  const auto cpus = cut_off(text, '/');
  const auto ranks = integer_from(text.substr(kPlainHost.size()));
  const auto cpu_count = cpus ? integer_from(*cpus) : ranks;
  if (!ranks || *ranks < 1 || *ranks > kMaxClusterRanks || !cpu_count || *cpu_count < 1 || *cpu_count > INT32_MAX) {
    return wrong_topology(name, "write host:RANKS, host:RANKS/CPUS, host:RANKS@25Gbit or host:RANKS/CPUS@25Gbit");
  }
  part.ranks = *ranks;
  part.host.cpus = static_cast<int>(*cpu_count);
  return part;
}

// Every core a rank, or as many on each device as stand behind the slash.
Result<Part> fabric_part(std::string_view name, std::string_view text) {
  std::optional<int64_t> per_device;
  if (const size_t slash = text.rfind('/'); slash != std::string_view::npos) {
    per_device = integer_from(text.substr(slash + 1));
    if (per_device) text = text.substr(0, slash);
  }
  Part part;
  CCOM_TRY_ASSIGN(part.host.imposed, make_fabric(text));
  const int cores = part.host.imposed->cores_per_device;
  part.per_device = per_device.value_or(cores);
  if (part.per_device < 1 || part.per_device > cores) {
    return wrong_topology(name, "a device has " + std::to_string(cores) + " cores");
  }
  part.ranks = part.host.imposed->devices * part.per_device;
  return part;
}

// "HOSTS*MACHINE" or "MACHINE".
Result<Part> read_part(std::string_view name, std::string_view text) {
  int64_t hosts = 1;
  if (const size_t star = text.find('*'); star != std::string_view::npos) {
    const auto count = integer_from(text.substr(0, star));
    if (!count || *count < 1 || *count > kMaxHosts) {
      return wrong_topology(name, "before the * stands the number of hosts, from 1 to " + std::to_string(kMaxHosts));
    }
    hosts = *count;
    text.remove_prefix(star + 1);
  }
  Result<Part> part = text.starts_with(kPlainHost) ? plain_part(name, text) : fabric_part(name, text);
  if (part) part->hosts = hosts;
  return part;
}

constexpr std::string_view kRacks = "racks:";

// "racks:12,20/4" or "racks:2@200Mbit,25ms", behind all hosts: who is in which rack.
Status put_in_racks(std::string_view name, std::string_view text, Topology& topology) {
  constexpr const char* kForm =
      "write racks:HOSTS, racks:HOSTS,HOSTS/TAPER or racks:HOSTS@200Mbit,25ms behind the hosts";
  const std::string_view tail = text.substr(std::min(text.find_first_of("/@"), text.size()));
  text.remove_suffix(tail.size());
  std::optional<Rack> rack_of_all = rack_speed_from(tail);
  if (!rack_of_all) return wrong_topology(name, kForm);
  std::vector<int64_t> sizes;
  for (size_t begin = kRacks.size(); begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto size = integer_from(text.substr(begin, end - begin));
    if (!size || *size < 1 || *size > kMaxHosts) return wrong_topology(name, kForm);
    sizes.push_back(*size);
    begin = end + 1;
  }
  size_t rack = 0;
  int64_t left = sizes[0];
  for (Host& host : topology.hosts) {
    if (left-- == 0) left = sizes[++rack % sizes.size()] - 1;
    host.rack = *rack_of_all;
    host.rack.name = "rack" + std::to_string(rack);
  }
  return Status::ok();
}

Status add_part(std::string_view name, const Part& part, Topology& topology) {
  if (topology.nranks() + part.hosts * part.ranks > kMaxClusterRanks) {
    return wrong_topology(name, "more than " + std::to_string(kMaxClusterRanks) + " ranks");
  }
  for (int64_t i = 0; i < part.hosts; ++i) {
    const auto index = static_cast<int>(topology.hosts.size());
    if (index == kMaxHosts) return wrong_topology(name, "more than " + std::to_string(kMaxHosts) + " hosts");
    Host host = part.host;
    host.id = host.name = "host" + std::to_string(index);
    topology.hosts.push_back(std::move(host));
    for (int local = 0; local < part.ranks; ++local) {
      const int device = part.per_device > 0 ? local / static_cast<int>(part.per_device) : -1;
      topology.ranks.push_back({.host = index, .local = local, .device = device});
    }
  }
  return Status::ok();
}

// The end of the first part: a '+' that does not begin "+routed".
size_t end_of_part(std::string_view text) {
  constexpr std::string_view kRouted = "+routed";
  size_t at = text.find('+');
  while (at != std::string_view::npos && text.substr(at).starts_with(kRouted)) at = text.find('+', at + 1);
  return at;
}

Result<Topology> make_cluster(std::string_view name) {
  Topology topology;
  for (std::string_view rest = name;;) {
    const size_t end = end_of_part(rest);
    if (rest.starts_with(kRacks) && end == std::string_view::npos && !topology.hosts.empty()) {
      CCOM_TRY(put_in_racks(name, rest, topology));
      break;
    }
    CCOM_TRY_ASSIGN(const Part part, read_part(name, rest.substr(0, end)));
    CCOM_TRY(add_part(name, part, topology));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  set_default_speeds(topology);
  return topology;
}

}  // namespace

bool names_cluster(std::string_view name) {
  if (name.ends_with(".json")) return false;
  return name.find('*') != std::string_view::npos || name.starts_with(kPlainHost) ||
         end_of_part(name) != std::string_view::npos;
}

Result<Topology> make_topology(std::string_view name) {
  if (!name.ends_with(".json")) return make_cluster(name);
  Result<std::string> text = read_file(std::string(name), kMaxTopologyBytes);
  if (!text) return error(ErrorKey::TopologyFile, "topology file: %s", text.error().message().c_str());
  Result<Topology> topology = topology_from_json(*text);
  if (topology) return topology;
  if (!fabric_from_json(*text)) return std::move(topology).error().in("topology file " + std::string(name));
  CCOM_TRY_ASSIGN(const Part host, fabric_part(name, name));  // a fabric's file names one host
  Topology occupied;
  CCOM_TRY(add_part(name, host, occupied));
  set_default_speeds(occupied);
  return occupied;
}

}  // namespace ccom
