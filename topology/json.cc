// SPDX-License-Identifier: Apache-2.0
//
// The JSON form. A fabric file written by hand looks like this; shape ("other"), dims, cores_per_device and
// inside_device may be left out, everything else is needed:
//
//   {"name": "pair", "shape": "chain", "dims": [2], "devices": 2, "cores_per_device": 4,
//    "links": [[0, 1, 1500, 50e9], [1, 0, 1500, 50e9]],
//    "inside_device": {"latency_ns": 750, "bytes_per_second": 200e9}}
//
// A link is [from, to, latency_ns, bytes_per_second]; switches are numbered after the devices. May follow, where they
// apply:
//
//   "switches": 1, "routed": true, "costs": {"post_ns": 100, "reduce_bytes_per_second": 0},
//   "uplinks": [{"devices": [0, 1], "latency_ns": 15000, "bytes_per_second": 25e9, "post_ns": 1000}]
//
// Written text has a fixed order of keys and digits that
// read back as the same number, so equal values give equal text. Every promise that topology.h makes about a value is
// checked when one is read (json_read.cc): planner and engine need not ask again.
#include <nlohmann/json.hpp>

#include "topology/costs_json.h"
#include "topology/learned_json.h"
#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using nlohmann::ordered_json;

double plain(double value) { return value + 0.0; }  // one zero: -0.0 would be another text

ordered_json json_of(const LinkSpeed& speed) {
  return {{"latency_ns", plain(speed.latency_ns)}, {"bytes_per_second", plain(speed.bytes_per_second)}};
}

ordered_json json_of(const Costs& costs) {
  return {{"post_ns", plain(costs.post_ns)}, {"reduce_bytes_per_second", plain(costs.reduce_bytes_per_second)}};
}

ordered_json json_of(const Uplink& uplink) {
  return {{"devices", uplink.devices},
          {"latency_ns", plain(uplink.speed.latency_ns)},
          {"bytes_per_second", plain(uplink.speed.bytes_per_second)},
          {"post_ns", plain(uplink.post_ns)}};
}

template <typename T>
ordered_json list_of(const std::vector<T>& values);

ordered_json json_of(const Fabric& fabric) {
  ordered_json links = ordered_json::array();
  for (const Link& link : fabric.links) {
    links.push_back(
        ordered_json::array({link.from, link.to, plain(link.speed.latency_ns), plain(link.speed.bytes_per_second)}));
  }
  ordered_json object = {{"name", fabric.name},
                         {"shape", name_of(fabric.shape)},
                         {"dims", fabric.dims},
                         {"devices", fabric.devices},
                         {"cores_per_device", fabric.cores_per_device},
                         {"links", std::move(links)},
                         {"inside_device", json_of(fabric.inside_device)}};
  if (fabric.switches > 0) object["switches"] = fabric.switches;
  if (fabric.routed) object["routed"] = true;
  if (!fabric.uplinks.empty()) object["uplinks"] = list_of(fabric.uplinks);
  if (fabric.costs != Costs{}) object["costs"] = json_of(fabric.costs);
  return object;
}

ordered_json json_of(const Nic& nic) {
  ordered_json object = {{"name", nic.name},
                         {"kind", nic.kind},
                         {"bytes_per_second", plain(nic.bytes_per_second)},
                         {"numa_node", nic.numa_node}};
  if (!nic.pci.empty()) object["pci"] = nic.pci;
  return object;
}

ordered_json json_of(const NeuronDevice& device) {
  return {{"number", device.number}, {"pci", device.pci}, {"numa_node", device.numa_node}, {"nics", device.nics}};
}

ordered_json json_of(const Cache& cache) {
  return {{"level", cache.level}, {"size_bytes", cache.size_bytes}, {"shared_by_cpus", cache.shared_by_cpus}};
}

ordered_json json_of(const Place& place) {
  ordered_json object = {{"host", place.host}, {"local", place.local}, {"device", place.device}};
  if (place.numa_node >= 0) object["numa_node"] = place.numa_node;
  if (place.cache_group >= 0) object["cache_group"] = place.cache_group;
  return object;
}

ordered_json json_of(const Locality& locality) {
  return {{"cpus", locality.cpus},
          {"cpu_quota", locality.cpu_quota},
          {"numa_node", locality.numa_node},
          {"cache_group", locality.cache_group}};
}

ordered_json json_of(const Host& host);

template <typename T>
ordered_json list_of(const std::vector<T>& values) {
  ordered_json list = ordered_json::array();
  for (const T& value : values) list.push_back(json_of(value));
  return list;
}

ordered_json json_of(const Host& host) {
  ordered_json object = {{"id", host.id},
                         {"name", host.name},
                         {"instance_type", host.instance_type},
                         {"cpu_model", host.cpu_model},
                         {"cpus", host.cpus},
                         {"numa_nodes", host.numa_nodes},
                         {"memory_bytes", host.memory_bytes},
                         {"caches", list_of(host.caches)},
                         {"nics", list_of(host.nics)}};
  if (!host.machine.empty()) object["machine"] = host.machine;
  if (host.neuron) object["neuron"] = json_of(*host.neuron);
  if (host.imposed) object["imposed"] = json_of(*host.imposed);
  if (!host.neuron_devices.empty()) object["neuron_devices"] = list_of(host.neuron_devices);
  if (!host.notes.empty()) object["notes"] = host.notes;
  return object;
}

ordered_json json_of(const Topology& topology) {
  ordered_json object{{"hosts", list_of(topology.hosts)},
                      {"ranks", list_of(topology.ranks)},
                      {"memory", json_of(topology.memory)},
                      {"network", json_of(topology.network)},
                      {"costs", json_of(topology.costs)}};
  if (topology.memory_costs != MemoryCosts{}) object["memory_costs"] = json_of(topology.memory_costs);
  if (topology.network_costs != NetworkCosts{}) object["network_costs"] = json_of(topology.network_costs);
  return object;
}

// Bytes that are not UTF-8 become U+FFFD; nothing is thrown.
std::string text_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Host& host) { return text_of(json_of(host)); }
std::string to_json(const Fabric& fabric) { return text_of(json_of(fabric)); }
std::string to_json(const Topology& topology) { return text_of(json_of(topology)); }
std::string to_json(const Locality& locality) { return text_of(json_of(locality)); }

std::string to_json(const Calibration& calibration) {
  ordered_json object = ordered_json::object(), costs = ordered_json::object();
  if (calibration.memory) object["memory"] = json_of(*calibration.memory);
  if (calibration.network) object["network"] = json_of(*calibration.network);
  if (calibration.post_ns) costs["post_ns"] = *calibration.post_ns;
  if (calibration.reduce_bytes_per_second) costs["reduce_bytes_per_second"] = *calibration.reduce_bytes_per_second;
  if (!costs.empty()) object["costs"] = std::move(costs);
  if (calibration.memory_costs) object["memory_costs"] = json_of(*calibration.memory_costs);
  if (calibration.network_costs) object["network_costs"] = json_of(*calibration.network_costs);
  if (!calibration.measured_on.empty()) object["measured_on"] = calibration.measured_on;
  if (calibration.ways != LearnedWays()) object["ways"] = json_of(calibration.ways);
  return text_of(object);
}

}  // namespace ccom
