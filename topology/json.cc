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
// and among the costs those of protocols (kProtocolCosts), as "receive_ns" and "rendezvous_bytes".
// Written text has a fixed order of keys and digits that
// read back as the same number, so equal values give equal text. Every promise that topology.h makes about a value is
// checked when one is read (json_read.cc): planner and engine need not ask again.
#include "topology/costs_json.h"
#include "topology/learned_json.h"
#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {
namespace {

double plain(double value) { return value + 0.0; }  // one zero: -0.0 would be another text

void add_speed(JsonObjectText& object, const LinkSpeed& speed) {
  object.add("latency_ns", plain(speed.latency_ns)).add("bytes_per_second", plain(speed.bytes_per_second));
}

std::string text_of(const LinkSpeed& speed) {
  JsonObjectText object;
  add_speed(object, speed);
  return object.text();
}

std::string text_of(const Costs& costs) {
  JsonObjectText object;
  object.add("post_ns", plain(costs.post_ns));
  object.add("reduce_bytes_per_second", plain(costs.reduce_bytes_per_second));
  const Costs none;
  for (const auto& [key, member] : kProtocolCosts) {
    if (costs.*member != none.*member) object.add(key, plain(costs.*member));
  }
  return object.text();
}

std::string text_of(const Uplink& uplink) {
  JsonObjectText object;
  object.add("devices", uplink.devices);
  add_speed(object, uplink.speed);
  return object.add("post_ns", plain(uplink.post_ns)).text();
}

std::string text_of(const Link& link) {
  JsonList list;
  for (const int device : {link.from, link.to}) list.add(json_text(device));
  for (const double number : {link.speed.latency_ns, link.speed.bytes_per_second}) list.add(json_text(plain(number)));
  return list.text();
}

std::string text_of(const Fabric& fabric);
std::string text_of(const Host& host);

template <typename T>
std::string list_of(const std::vector<T>& values);

std::string text_of(const Nic& nic) {
  JsonObjectText object;
  object.add("name", nic.name)
      .add("kind", nic.kind)
      .add("bytes_per_second", plain(nic.bytes_per_second))
      .add("numa_node", nic.numa_node);
  if (!nic.pci.empty()) object.add("pci", nic.pci);
  return object.text();
}

std::string text_of(const NeuronDevice& device) {
  return JsonObjectText()
      .add("number", device.number)
      .add("pci", device.pci)
      .add("numa_node", device.numa_node)
      .add("nics", device.nics)
      .text();
}

std::string text_of(const Rack& rack) {
  JsonObjectText object;
  object.add("name", rack.name).add("taper", plain(rack.taper));
  if (rack.has_speed()) object.add_text("uplinks", text_of(rack.uplinks));
  return object.text();
}

std::string text_of(const Cache& cache) {
  return JsonObjectText()
      .add("level", cache.level)
      .add("size_bytes", cache.size_bytes)
      .add("shared_by_cpus", cache.shared_by_cpus)
      .text();
}

std::string text_of(const Place& place) {
  JsonObjectText object;
  object.add("host", place.host).add("local", place.local).add("device", place.device);
  if (place.numa_node >= 0) object.add("numa_node", place.numa_node);
  if (place.cache_group >= 0) object.add("cache_group", place.cache_group);
  return object.text();
}

template <typename T>
std::string list_of(const std::vector<T>& values) {
  JsonList list;
  for (const T& value : values) list.add(text_of(value));
  return list.text();
}

std::string text_of(const Fabric& fabric) {
  JsonObjectText object;
  object.add("name", fabric.name)
      .add("shape", name_of(fabric.shape))
      .add("dims", fabric.dims)
      .add("devices", fabric.devices)
      .add("cores_per_device", fabric.cores_per_device)
      .add_text("links", list_of(fabric.links))
      .add_text("inside_device", text_of(fabric.inside_device));
  if (fabric.switches > 0) object.add("switches", fabric.switches);
  if (fabric.routed) object.add("routed", true);
  if (!fabric.uplinks.empty()) object.add_text("uplinks", list_of(fabric.uplinks));
  if (fabric.costs != Costs{}) object.add_text("costs", text_of(fabric.costs));
  return object.text();
}

std::string text_of(const Host& host) {
  JsonObjectText object;
  object.add("id", host.id)
      .add("name", host.name)
      .add("instance_type", host.instance_type)
      .add("cpu_model", host.cpu_model)
      .add("cpus", host.cpus)
      .add("numa_nodes", host.numa_nodes)
      .add("memory_bytes", host.memory_bytes)
      .add_text("caches", list_of(host.caches))
      .add_text("nics", list_of(host.nics));
  if (!host.machine.empty()) object.add("machine", host.machine);
  if (host.neuron) object.add_text("neuron", text_of(*host.neuron));
  if (host.imposed) object.add_text("imposed", text_of(*host.imposed));
  if (!host.neuron_devices.empty()) object.add_text("neuron_devices", list_of(host.neuron_devices));
  if (!host.notes.empty()) object.add("notes", host.notes);
  if (!host.rack.name.empty()) object.add_text("rack", text_of(host.rack));
  return object.text();
}

}  // namespace

std::string to_json(const Host& host) { return text_of(host); }
std::string to_json(const Fabric& fabric) { return text_of(fabric); }

std::string to_json(const Locality& locality) {
  return JsonObjectText()
      .add("cpus", locality.cpus)
      .add("cpu_quota", locality.cpu_quota)
      .add("numa_node", locality.numa_node)
      .add("cache_group", locality.cache_group)
      .text();
}

std::string to_json(const Topology& topology) {
  JsonObjectText object;
  object.add_text("hosts", list_of(topology.hosts))
      .add_text("ranks", list_of(topology.ranks))
      .add_text("memory", text_of(topology.memory))
      .add_text("network", text_of(topology.network))
      .add_text("costs", text_of(topology.costs));
  if (topology.memory_costs != MemoryCosts{}) object.add("memory_costs", topology.memory_costs);
  if (topology.network_costs != NetworkCosts{}) object.add("network_costs", topology.network_costs);
  return object.text();
}

std::string to_json(const Calibration& calibration) {
  JsonObjectText object, costs;
  if (calibration.memory) object.add_text("memory", text_of(*calibration.memory));
  if (calibration.network) object.add_text("network", text_of(*calibration.network));
  if (calibration.post_ns) costs.add("post_ns", *calibration.post_ns);
  if (calibration.reduce_bytes_per_second) costs.add("reduce_bytes_per_second", *calibration.reduce_bytes_per_second);
  if (!costs.is_empty()) object.add_text("costs", costs.text());
  if (calibration.memory_costs) object.add("memory_costs", *calibration.memory_costs);
  if (calibration.network_costs) object.add("network_costs", *calibration.network_costs);
  if (!calibration.measured_on.empty()) object.add("measured_on", calibration.measured_on);
  if (calibration.ways != LearnedWays()) object.add("ways", calibration.ways);
  return object.text();
}

}  // namespace ccom
