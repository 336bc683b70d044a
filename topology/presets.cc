// SPDX-License-Identifier: Apache-2.0
//
// Presets come from presets.json, which is compiled in and states the source of each speed. All are model input from
// documentation; none was measured by us.
#include "topology/presets.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/fork.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

using nlohmann::json;

constexpr char kPresets[] =
#include "presets.inc"
    ;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

const json& presets() {
  static constinit MadeOnce<json> parsed;
  return parsed.get([] { return json::parse(kPresets); });
}

bool is_machine(const json& entry) { return entry.is_object() && (entry.contains("chips") || entry.contains("like")); }
bool is_ultraserver(const json& entry) { return entry.is_object() && entry.contains("node"); }

// The entry, completed with the entries it inherits through "like".
json resolve(const std::string& name, int depth = 0) {
  CCOM_ASSERT(depth < 8);
  const json& entry = presets().at(name);
  if (!entry.contains("like")) return entry;
  json whole = resolve(entry.at("like").get<std::string>(), depth + 1);
  whole.update(entry);
  whole.erase("like");
  return whole;
}

// Of one link, or of a device's port at a switch, per direction. Bidirectional figures are halved.
LinkSpeed link_speed(const json& preset) {
  LinkSpeed speed = kGenericLink;
  if (preset.contains("link_gibs_two_way")) {
    speed.bytes_per_second = preset.at("link_gibs_two_way").get<double>() * kGib / 2;
  } else if (preset.contains("link_gbs_one_way")) {
    speed.bytes_per_second = preset.at("link_gbs_one_way").get<double>() * 1e9;
  } else if (preset.contains("port_gbs_two_way")) {
    speed.bytes_per_second = preset.at("port_gbs_two_way").get<double>() * 1e9 / 2;
  }
  return speed;
}

// Cores of a device communicate through its memory, which they share; what one writes is also read once.
void set_inside(Fabric& fabric, const json& preset) {
  fabric.cores_per_device = preset.value("cores", 1) / preset.value("lnc", 1);
  if (!preset.contains("hbm_gbs")) return;
  fabric.inside_device.bytes_per_second = preset.at("hbm_gbs").get<double>() * 1e9 / 2 / fabric.cores_per_device;
}

// Devices behind the same PCI switches share their cards; without information, the devices share all cards evenly.
std::vector<Uplink> uplinks_of(const json& preset, int devices) {
  const int cards = preset.value("efa", 0);
  if (cards == 0) return {};
  const double card = preset.at("efa_gbps").get<double>() * 1e9 / 8;
  std::vector<std::vector<int>> groups;
  if (preset.contains("pci_groups")) {
    for (const auto& [bus, members] : preset.at("pci_groups").items()) groups.push_back(members);
  } else {
    const int count = std::min(cards, devices);
    for (int device = 0; device < devices; ++device) {
      if (device * count % devices == 0) groups.emplace_back();
      groups.back().push_back(device);
    }
  }
  std::vector<Uplink> uplinks;
  const double each = static_cast<double>(cards) / static_cast<double>(groups.size());
  for (const auto& group : groups) {
    uplinks.push_back({group, {kUplinkLatencyNs, card * each}, kUplinkPostNs / each});
  }
  return uplinks;
}

Fabric machine(const std::string& name, const json& preset) {
  const int devices = preset.at("chips").get<int>();
  const std::string text = preset.value("shape", "single");
  const LinkSpeed speed = link_speed(preset);
  Fabric fabric;
  if (text == "single") {
    fabric = make_shape(name, Fabric::Shape::Single, {}, speed);
  } else if (text == "switch") {
    fabric = make_shape(name, Fabric::Shape::Switch, {devices}, speed);
  } else if (text == "torus4x4") {
    fabric = make_shape(name, Fabric::Shape::Torus, {4, 4}, speed);
  } else {  // ring12, chain6
    const std::string kind = text.substr(0, text.find_first_of("0123456789"));
    const auto shape = shape_from(kind);
    CCOM_ASSERT(shape == Fabric::Shape::Ring || shape == Fabric::Shape::Chain);
    fabric = make_shape(name, *shape, {std::atoi(text.c_str() + kind.size())}, speed);
  }
  CCOM_ASSERT(fabric.devices == devices);
  set_inside(fabric, preset);
  fabric.uplinks = uplinks_of(preset, devices);
  return fabric;
}

// `hosts` instances whose devices of equal number form a ring: device = instance * 16 + its number there.
Fabric stacked(const std::string& name, const json& entry, int hosts) {
  const json node = resolve(entry.at("node").get<std::string>());
  const Fabric layer = machine(name, node);
  if (hosts == 1) return layer;
  Fabric fabric = make_shape(name, Fabric::Shape::Torus, {hosts, layer.dims[0], layer.dims[1]}, layer.links[0].speed);
  const double between = node.at("z_link_gbs_one_way").get<double>() * 1e9;
  for (Link& link : fabric.links) {
    if (link.from / layer.devices != link.to / layer.devices) link.speed.bytes_per_second = between;
  }
  fabric.cores_per_device = layer.cores_per_device;
  fabric.inside_device = layer.inside_device;
  for (int host = 0; host < hosts; ++host) {
    for (Uplink uplink : layer.uplinks) {
      for (int& device : uplink.devices) device += host * layer.devices;
      fabric.uplinks.push_back(std::move(uplink));
    }
  }
  return fabric;
}

// Trainium3: each device has a port at the switch of its sled, one at that of its rack, and links to the devices at its
// position in other racks. The documentation is contradictory: provisional.
Fabric switched(const std::string& name, const json& entry) {
  const int sled = entry.at("chips").get<int>();
  const int sleds = entry.at("nodes").get<int>();
  const int rack = sled * entry.value("sleds_per_rack", sleds);
  Fabric fabric = make_shape(name, Fabric::Shape::Single, {}, kGenericLink);
  fabric.shape = Fabric::Shape::Other;
  fabric.devices = sled * sleds;
  set_inside(fabric, entry);
  fabric.routed = true;
  const auto join = [&](int a, int b, const char* key) {
    const LinkSpeed speed{kHopLatencyNs, entry.at(key).get<double>() * 1e9};
    fabric.links.push_back({a, b, speed});
    fabric.links.push_back({b, a, speed});
  };
  int next = fabric.devices;
  for (const auto& [group, key] : {std::pair(sled, "sled_gbs_one_way"), std::pair(rack, "rack_gbs_one_way")}) {
    if (!entry.contains(key)) continue;
    for (int first = 0; first < fabric.devices; first += group, ++next) {
      for (int device = first; device < first + group; ++device) join(device, next, key);
    }
  }
  fabric.switches = next - fabric.devices;
  for (int device = 0; device + rack < fabric.devices; ++device) join(device, device + rack, "across_gbs_one_way");
  std::ranges::sort(fabric.links, {}, [](const Link& link) { return std::pair(link.from, link.to); });
  const double gbits = entry.value("efa_gbps_total", 0.0);
  for (int device = 0; gbits > 0 && device < fabric.devices; ++device) {
    fabric.uplinks.push_back({{device}, {kUplinkLatencyNs, gbits * 1e9 / 8 / fabric.devices}, kUplinkPostNs});
  }
  return fabric;
}

// The number of instances joined by a mode: two for "x2h". 0: no such mode.
int hosts_of_mode(const json& entry, std::string_view mode) {
  if (mode.empty()) return entry.at("nodes").get<int>();
  const json node = resolve(entry.at("node").get<std::string>());
  for (const json& known : node.at("modes")) {
    if (known.get<std::string>() == mode) return mode[1] - '0';
  }
  return 0;
}

// "a0" -> "0000:a0", by device.
std::vector<std::string> buses_at(const json& preset, const char* key) {
  std::vector<std::string> buses;
  if (!preset.contains(key)) return buses;
  for (const json& bus : preset.at(key)) buses.push_back("0000:" + bus.get<std::string>());
  return buses;
}

std::string base_of(std::string_view name) { return std::string(name.substr(0, name.find(':'))); }

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : presets().items()) {
    if (is_machine(entry) || is_ultraserver(entry)) names.push_back(name);
  }
  return names;
}

bool is_preset(std::string_view name) {
  const auto found = presets().find(base_of(name));
  if (found == presets().end()) return false;
  return is_ultraserver(*found) || (is_machine(*found) && name.find(':') == std::string_view::npos);
}

Result<Fabric> make_preset(std::string_view name) {
  const std::string base = base_of(name);
  const json entry = resolve(base);
  if (is_ultraserver(entry)) {
    const int hosts = hosts_of_mode(entry, name.size() > base.size() ? name.substr(base.size() + 1) : "");
    if (hosts > 0) return stacked(std::string(name), entry, hosts);
    return error(ErrorKey::TopologyFile, "topology \"%.*s\": no such mode; there are x4, x2h, x2v, x1",
                 static_cast<int>(name.size()), name.data());
  }
  return entry.contains("nodes") ? switched(base, entry) : machine(base, entry);
}

PresetSeats preset_seats(std::string_view name) {
  if (!is_preset(name)) return {};
  const json preset = resolve(base_of(name));
  PresetSeats seats{.bus = buses_at(preset, "neuron_bus"), .card_bus = buses_at(preset, "efa_bus"), .numa_node = {}};
  const size_t devices = preset.value("chips", size_t{0});
  if (preset.contains("numa1")) {
    seats.numa_node.assign(devices, 0);
    for (const json& device : preset.at("numa1")) seats.numa_node.at(device.get<size_t>()) = 1;
  }
  if (!preset.contains("pci_groups")) return seats;
  seats.bus.assign(devices, "");
  seats.numa_node.assign(devices, -1);
  for (const auto& [node, groups] : preset.at("numa").items()) {
    for (const json& bus : groups) {
      for (const json& device : preset.at("pci_groups").at(bus.get<std::string>())) {
        seats.bus.at(device.get<size_t>()) = "0000:" + bus.get<std::string>();
        seats.numa_node.at(device.get<size_t>()) = std::atoi(node.c_str());
      }
    }
  }
  return seats;
}

}  // namespace ccom
