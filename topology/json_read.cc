// SPDX-License-Identifier: Apache-2.0
//
// Reading the JSON form (json.cc shows it): types, ranges, and every promise that topology.h makes about a value.
#include <algorithm>
#include <limits>
#include <set>

#include "topology/costs_json.h"
#include "topology/json_reader.h"
#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxCpus = 1 << 20;
constexpr size_t kMaxList = 4096;

int int_at(const JsonAt& at, int low, int high) { return static_cast<int>(at.integer(low, high)); }

// read(element) of each, in order, until something is wrong.
template <typename T, typename Read>
std::vector<T> read_list(const JsonAt& at, size_t most, Read read) {
  std::vector<T> values;
  const size_t count = at.array_size(0, most);
  for (size_t i = 0; i < count && at.problem.status().is_ok(); ++i) values.push_back(read(at.element(i)));
  return values;
}

// Numbers, each above the one before.
std::vector<int> read_ascending(const JsonAt& at, size_t most, int high) {
  int least = 0;
  return read_list<int>(at, most, [&](const JsonAt& element) {
    const int value = int_at(element, least, high);
    least = value + 1;
    return value;
  });
}

Costs read_costs(const JsonAt& at) {
  JsonObject object(at);
  Costs costs;
  costs.post_ns = object.at("post_ns").number(0, kMaxLatencyNs);
  costs.reduce_bytes_per_second = object.at("reduce_bytes_per_second").number(0, kMaxBytesPerSecond);
  for (const auto& [key, member] : kProtocolCosts) {
    if (object.has(key)) costs.*member = object.at(key).number(0, kMaxBytesPerSecond);
  }
  object.finish();
  return costs;
}

Uplink read_uplink(const JsonAt& at, int devices, std::set<int>& taken) {
  JsonObject object(at);
  Uplink uplink;
  const JsonAt list = object.at("devices");
  const size_t count = list.array_size(1, kMaxDevices);
  for (size_t i = 0; i < count && at.problem.status().is_ok(); ++i) {
    uplink.devices.push_back(int_at(list.element(i), i == 0 ? 0 : uplink.devices.back() + 1, devices - 1));
    if (!taken.insert(uplink.devices.back()).second) {
      at.problem.add(list.element(i).path, "this device has an uplink already");
    }
  }
  uplink.speed = speed_at(object.at("latency_ns"), object.at("bytes_per_second"));
  uplink.post_ns = object.at("post_ns").number(0, kMaxLatencyNs);
  object.finish();
  return uplink;
}

Link read_link(const JsonAt& at, int vertices) {
  if (at.array_size(4, 4) == 0) return {};
  return {.from = int_at(at.element(0), 0, vertices - 1),
          .to = int_at(at.element(1), 0, vertices - 1),
          .speed = speed_at(at.element(2), at.element(3))};
}

std::string text_of_edge(const Edge& edge) { return std::to_string(edge.first) + " -> " + std::to_string(edge.second); }

// Links are sorted, each once, none to itself, both directions there, and those of the shape unless it is Other.
void check_links(const Fabric& fabric, const JsonAt& at) {
  const std::vector<Edge> edges = edges_of(fabric);
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto [from, to] = edges[i];
    if (from == to) return at.element(i).problem.add(at.element(i).path, "a link from a device to itself");
    if (i > 0 && !(edges[i - 1] < edges[i])) {
      return at.problem.add(at.element(i).path, "links must be sorted by (from, to), each once");
    }
  }
  for (const auto& [from, to] : edges) {
    if (!fabric.joined(to, from))
      return at.problem.add(at.path, "there is " + text_of_edge({from, to}) + " but no way back");
  }
  if (fabric.shape == Fabric::Shape::Other) return;
  std::vector<Edge> difference;
  std::ranges::set_symmetric_difference(edges, edges_of(fabric.shape, fabric.dims), std::back_inserter(difference));
  if (difference.empty()) return;
  const bool is_extra = std::ranges::binary_search(edges, difference.front());
  const std::string which = text_of_edge(difference.front());
  at.problem.add(at.path, "link " + which + (is_extra ? " is not part of" : " is missing in") + " shape " +
                              std::string(name_of(fabric.shape)) + "; use shape \"other\"");
}

void read_shape(JsonObject& object, Fabric& fabric) {
  fabric.shape = Fabric::Shape::Other;
  if (object.has("shape")) {
    const JsonAt at = object.at("shape");
    const auto shape = shape_from(at.text(0, kMaxTextBytes));
    if (!shape) at.problem.add(at.path, "expected single, ring, chain, torus, full, switch or other");
    fabric.shape = shape.value_or(Fabric::Shape::Other);
  }
  if (object.has("dims")) {
    fabric.dims = read_list<int>(object.at("dims"), 3, [](const JsonAt& dim) { return int_at(dim, 1, kMaxDevices); });
  }
}

std::vector<Uplink> read_uplinks(const JsonAt& at, int devices) {
  std::set<int> taken;
  return read_list<Uplink>(at, kMaxDevices, [&](const JsonAt& uplink) { return read_uplink(uplink, devices, taken); });
}

Fabric read_fabric(const JsonAt& at) {
  JsonObject object(at);
  Fabric fabric;
  fabric.name = object.at("name").text(1, kMaxTextBytes);
  read_shape(object, fabric);
  fabric.devices = int_at(object.at("devices"), 1, kMaxDevices);
  if (object.has("cores_per_device")) {
    fabric.cores_per_device = int_at(object.at("cores_per_device"), 1, kMaxCoresPerDevice);
  }
  if (object.has("switches")) fabric.switches = int_at(object.at("switches"), 0, kMaxSwitches);
  const JsonAt links = object.at("links");
  const int vertices = fabric.devices + fabric.switches;
  fabric.links = read_list<Link>(links, size_t{kMaxDevices} * kMaxFullDevices,
                                 [&](const JsonAt& link) { return read_link(link, vertices); });
  fabric.inside_device = object.has("inside_device") ? read_speed(object.at("inside_device")) : kInsideDevice;
  if (object.has("routed")) fabric.routed = object.at("routed").boolean();
  if (object.has("costs")) fabric.costs = read_costs(object.at("costs"));
  if (object.has("uplinks")) fabric.uplinks = read_uplinks(object.at("uplinks"), fabric.devices);
  object.finish();
  if (!at.problem.status().is_ok()) return fabric;
  if (const std::string what = wrong_with_dims(fabric.shape, fabric.dims, fabric.devices); !what.empty()) {
    at.problem.add(at.path + ".dims", what);
  } else if (fabric.shape == Fabric::Shape::Switch && fabric.switches != 1) {
    at.problem.add(at.path + ".switches", "a fabric of shape switch has one switch");
  } else {
    check_links(fabric, links);
  }
  return fabric;
}

Nic read_nic(const JsonAt& at) {
  JsonObject object(at);
  Nic nic;
  nic.name = object.at("name").text(1, kMaxTextBytes);
  nic.kind = object.at("kind").text(1, kMaxTextBytes);
  nic.bytes_per_second = object.at("bytes_per_second").number(0, kMaxBytesPerSecond);
  nic.numa_node = int_at(object.at("numa_node"), -1, kMaxCpus);
  if (object.has("pci")) nic.pci = object.at("pci").text(1, kMaxTextBytes);
  object.finish();
  return nic;
}

std::string read_text(const JsonAt& at) { return at.text(1, kMaxTextBytes); }

Cache read_cache(const JsonAt& at) {
  JsonObject object(at);
  Cache cache;
  cache.level = int_at(object.at("level"), 1, 16);
  cache.size_bytes = static_cast<uint64_t>(object.at("size_bytes").integer(0, int64_t{1} << 50));
  cache.shared_by_cpus = int_at(object.at("shared_by_cpus"), 1, kMaxCpus);
  object.finish();
  return cache;
}

Place read_place(const JsonAt& at) {
  JsonObject object(at);
  Place place;
  place.host = int_at(object.at("host"), 0, kMaxRanks - 1);
  place.local = int_at(object.at("local"), 0, kMaxRanks - 1);
  place.device = int_at(object.at("device"), -1, kMaxDevices - 1);
  if (object.has("numa_node")) place.numa_node = int_at(object.at("numa_node"), -1, kMaxCpus);
  if (object.has("cache_group")) place.cache_group = int_at(object.at("cache_group"), -1, kMaxCpus);
  object.finish();
  return place;
}

Locality read_locality(const JsonAt& at) {
  JsonObject object(at);
  Locality locality;
  locality.cpus = read_ascending(object.at("cpus"), kMaxCpus, kMaxCpus);
  locality.cpu_quota = int_at(object.at("cpu_quota"), 0, kMaxCpus);
  locality.numa_node = int_at(object.at("numa_node"), -1, kMaxCpus);
  locality.cache_group = int_at(object.at("cache_group"), -1, kMaxCpus);
  object.finish();
  return locality;
}

NeuronDevice read_neuron_device(const JsonAt& at) {
  JsonObject object(at);
  NeuronDevice device;
  device.number = int_at(object.at("number"), 0, std::numeric_limits<int>::max());
  device.pci = object.at("pci").text(0, kMaxTextBytes);
  device.numa_node = int_at(object.at("numa_node"), -1, kMaxCpus);
  device.nics = read_list<std::string>(object.at("nics"), kMaxList, read_text);
  object.finish();
  return device;
}

// One for each device of the fabric, by place.
void read_neuron_devices(const JsonAt& at, Host& host) {
  host.neuron_devices = read_list<NeuronDevice>(at, kMaxDevices, read_neuron_device);
  const int devices = host.neuron ? host.neuron->devices : 0;
  if (static_cast<int>(host.neuron_devices.size()) != devices) {
    at.problem.add(at.path, "expected one for each of the " + std::to_string(devices) + " devices of neuron");
  }
}

Rack read_rack(const JsonAt& at) {
  JsonObject object(at);
  Rack rack;
  rack.name = object.at("name").text(1, kMaxTextBytes);
  rack.taper = object.at("taper").number(1, kMostTaper);
  if (object.has("uplinks")) rack.uplinks = read_speed(object.at("uplinks"));
  object.finish();
  return rack;
}

Host read_host(const JsonAt& at) {
  JsonObject object(at);
  Host host;
  host.id = object.at("id").text(1, kMaxTextBytes);
  host.name = object.at("name").text(0, kMaxTextBytes);
  host.instance_type = object.at("instance_type").text(0, kMaxTextBytes);
  host.cpu_model = object.at("cpu_model").text(0, kMaxTextBytes);
  host.cpus = int_at(object.at("cpus"), 1, kMaxCpus);
  host.numa_nodes = int_at(object.at("numa_nodes"), 1, kMaxCpus);
  host.memory_bytes = static_cast<uint64_t>(object.at("memory_bytes").integer(0, int64_t{1} << 60));
  host.caches = read_list<Cache>(object.at("caches"), kMaxList, read_cache);
  host.nics = read_list<Nic>(object.at("nics"), kMaxList, read_nic);
  if (object.has("machine")) host.machine = object.at("machine").text(1, kMaxTextBytes);
  if (object.has("neuron")) host.neuron = read_fabric(object.at("neuron"));
  if (object.has("imposed")) host.imposed = read_fabric(object.at("imposed"));
  if (object.has("neuron_devices")) read_neuron_devices(object.at("neuron_devices"), host);
  if (object.has("notes")) host.notes = read_list<std::string>(object.at("notes"), kMaxList, read_text);
  if (object.has("rack")) host.rack = read_rack(object.at("rack"));
  object.finish();
  return host;
}

// What topology.h promises about places: hosts in the order of their lowest rank, locals counted upwards, a device of
// the imposed fabric or -1, and no device with more ranks than cores.
void check_places(const Topology& topology, const JsonAt& at) {
  std::vector<int> members(topology.hosts.size(), 0);
  std::vector<std::vector<int>> taken(topology.hosts.size());
  size_t hosts_seen = 0;
  for (size_t rank = 0; rank < topology.ranks.size(); ++rank) {
    const Place& place = topology.ranks[rank];
    const std::string path = at.path + ".ranks[" + std::to_string(rank) + "]";
    const auto host = static_cast<size_t>(place.host);
    if (host >= topology.hosts.size()) return at.problem.add(path + ".host", "there is no such host");
    if (host > hosts_seen) return at.problem.add(path + ".host", "hosts must be in the order of their lowest rank");
    hosts_seen = std::max(hosts_seen, host + 1);
    if (place.local != members[host]++) return at.problem.add(path + ".local", "must count the host's ranks upwards");
    const auto& fabric = topology.hosts[host].imposed;
    if (fabric.has_value() != (place.device >= 0) || (fabric && place.device >= fabric->devices)) {
      return at.problem.add(path + ".device", "must be a device of the imposed fabric, -1 without one");
    }
    if (!fabric) continue;
    taken[host].resize(static_cast<size_t>(fabric->devices));
    if (++taken[host][static_cast<size_t>(place.device)] > fabric->cores_per_device) {
      return at.problem.add(path + ".device", "has more ranks than cores");
    }
  }
  if (hosts_seen != topology.hosts.size()) at.problem.add(at.path + ".hosts", "a host without ranks");
}

Topology read_topology(const JsonAt& at) {
  JsonObject object(at);
  Topology topology;
  topology.hosts = read_list<Host>(object.at("hosts"), kMaxRanks, read_host);
  topology.ranks = read_list<Place>(object.at("ranks"), kMaxRanks, read_place);
  topology.memory = read_speed(object.at("memory"));
  topology.network = read_speed(object.at("network"));
  if (object.has("costs")) topology.costs = read_costs(object.at("costs"));
  if (object.has("memory_costs")) topology.memory_costs = read_memory_costs(object.at("memory_costs"));
  if (object.has("network_costs")) topology.network_costs = read_network_costs(object.at("network_costs"));
  object.finish();
  if (!at.problem.status().is_ok()) return topology;
  std::set<std::string> ids;
  for (const Host& host : topology.hosts) {
    if (!ids.insert(host.id).second) at.problem.add(at.path + ".hosts", "id \"" + host.id + "\" is there twice");
  }
  check_places(topology, at);
  return topology;
}

template <typename T, typename Read>
Result<T> from_json(std::string_view text, const char* root, Read read) {
  CCOM_TRY_ASSIGN(const JsonDocument document, JsonDocument::parse(text));
  Problem problem;
  T value = read(document.root(root, problem));
  if (!problem.status().is_ok()) return problem.status();
  return value;
}

}  // namespace

Result<Host> host_from_json(std::string_view text) { return from_json<Host>(text, "host", read_host); }
Result<Locality> locality_from_json(std::string_view text) {
  return from_json<Locality>(text, "locality", read_locality);
}
Result<MeasuredCosts> measured_costs_from_json(std::string_view text) {
  return from_json<MeasuredCosts>(text, "costs", read_measured_costs);
}
Result<Fabric> fabric_from_json(std::string_view text) { return from_json<Fabric>(text, "fabric", read_fabric); }
Result<Topology> topology_from_json(std::string_view text) {
  return from_json<Topology>(text, "topology", read_topology);
}

}  // namespace ccom
