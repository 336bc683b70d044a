// SPDX-License-Identifier: Apache-2.0
//
// Properties of Neuron device information: neighbours are listed in chip-dependent order (so they are treated as a
// set), readable by root only in some driver versions (so neuron-ls, or the preset of the instance type, is used),
// numbered differently in a container (so devices are identified by the graph), and missing if only some devices are
// visible (so there are no links). Speeds are never available.
#include "topology/discover_neuron.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/log.h"
#include "topology/neuron_driver.h"
#include "topology/neuron_notes.h"
#include "topology/recognise.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

// Links between visible devices, by position. A link exists if both ends report it: in a container, the numbers
// reported by one device may refer to hidden or renumbered devices.
SeenGraph graph_of(const std::vector<SeenDevice>& devices) {
  SeenGraph graph;
  std::map<int, int> position;
  for (const SeenDevice& device : devices) position.emplace(device.number, static_cast<int>(position.size()));
  std::set<Edge> half;
  for (const SeenDevice& device : devices) {
    graph.numbers.push_back(device.number);
    for (const int neighbour : device.neighbours.value_or(std::set<int>())) {
      const auto found = position.find(neighbour);
      if (found != position.end() && neighbour != device.number) half.emplace(position[device.number], found->second);
    }
  }
  for (const auto& [from, to] : half)
    (half.contains({to, from}) ? graph.edges : graph.one_sided).emplace_back(from, to);
  return graph;
}

// ---- cores and speeds ----

// The number of physical cores identifies the generation: 2 on Trainium and Inferentia2, 8 from Trainium2, which by
// default combines two physical cores into a logical one. The generation determines link speeds.
constexpr int64_t kCoresOfTrainium2 = 8;
constexpr size_t kMostDevices = 256;  // of one host; 64 at most today

// A machine of the same generation, for its speeds.
Fabric same_generation(int64_t physical) {
  return *make_fabric(physical >= kCoresOfTrainium2 ? "trn2.48xlarge" : "trn1.32xlarge");
}

// Cores share the bandwidth of a device's memory.
void set_cores(Fabric& fabric, int cores) {
  fabric.inside_device.bytes_per_second *= static_cast<double>(fabric.cores_per_device) / cores;
  fabric.cores_per_device = cores;
}

int64_t physical_cores(const std::vector<SeenDevice>& devices, const std::optional<Fabric>& preset) {
  for (const SeenDevice& device : devices) {
    if (device.physical_cores > 0) return device.physical_cores;
  }
  if (!preset) return 1;
  return preset->cores_per_device == 4 ? kCoresOfTrainium2 : preset->cores_per_device;
}

// By the runtime's setting, else from neuron-ls, else the default of the generation.
int logical_cores(const std::vector<SeenDevice>& devices, int64_t physical, const NeuronHints& hints) {
  if (physical < kCoresOfTrainium2) return static_cast<int>(std::max<int64_t>(1, physical));
  const auto said = std::ranges::find_if(devices, [](const SeenDevice& one) { return one.cores_per_logical > 0; });
  const int joined = hints.cores_per_logical > 0 ? hints.cores_per_logical
                     : said != devices.end()     ? said->cores_per_logical
                                                 : 2;
  return static_cast<int>(physical / joined);
}

std::optional<Fabric> preset_of(const std::string& instance_type) {
  if (!instance_type.starts_with("trn") && !instance_type.starts_with("inf")) return std::nullopt;
  const auto names = preset_names();  // checked first: the text comes from a file and must not be interpreted as a path
  if (std::ranges::find(names, instance_type) == names.end()) return std::nullopt;
  Result<Fabric> preset = make_fabric(instance_type);
  if (!preset || preset->switches > 0) return std::nullopt;  // the driver's representation of switches is unknown
  return *std::move(preset);
}

// ---- the fabric ----

NeuronFound assume(const Fabric& preset, const NeuronHints& hints) {
  NeuronFound found{.fabric = preset};
  set_cores(found.fabric, logical_cores({}, physical_cores({}, preset), hints));
  for (int device = 0; device < preset.devices; ++device) found.devices.push_back({.number = device});
  found.notes.push_back("Neither the Neuron driver nor neuron-ls shows a device; those of " + preset.name +
                        " are assumed.");
  return found;
}

std::string plain_name(const std::string& kind, int count, bool is_readable) {
  return kind + " (" + std::to_string(count) + (count == 1 ? " device" : " devices") +
         (is_readable ? ")" : ", links not readable)");
}

// The fabric of a graph without a preset, with devices in the order of the recognised shape.
Fabric shaped(const SeenGraph& graph, const Recognised& recognised, const Fabric& like) {
  std::vector<int> place(recognised.order.size());
  for (size_t i = 0; i < place.size(); ++i) place[static_cast<size_t>(recognised.order[i])] = static_cast<int>(i);
  Fabric fabric;
  fabric.shape = recognised.shape;
  fabric.dims = recognised.dims;
  fabric.devices = static_cast<int>(place.size());
  fabric.cores_per_device = like.cores_per_device;
  fabric.inside_device = like.inside_device;
  fabric.costs = like.costs;
  const LinkSpeed speed = like.links.empty() ? kGenericLink : like.links.front().speed;
  for (const auto& [from, to] : graph.edges) {
    fabric.links.push_back({place[static_cast<size_t>(from)], place[static_cast<size_t>(to)], speed});
  }
  std::ranges::sort(fabric.links, {}, [](const Link& link) { return std::pair(link.from, link.to); });
  return fabric;
}

NeuronFound build(const std::vector<SeenDevice>& devices, const std::optional<Fabric>& preset,
                  const NeuronHints& hints) {
  NeuronFound found;
  const int count = static_cast<int>(devices.size());
  const bool is_readable =
      std::ranges::all_of(devices, [](const SeenDevice& one) { return one.neighbours.has_value(); });
  const int64_t physical = physical_cores(devices, preset);
  SeenGraph graph = graph_of(devices);
  if (!is_readable) graph.edges.clear();
  std::vector<int> order;
  if (preset && preset->devices == count)
    order = match(count, is_readable ? graph.edges : edges_of(*preset), edges_of(*preset));
  if (!order.empty()) {
    found.fabric = *preset;
    if (!is_readable) found.notes.push_back("The links cannot be read; those of " + preset->name + " are assumed.");
  } else {
    Recognised recognised = recognise(count, graph.edges);
    found.fabric = shaped(graph, recognised, preset ? *preset : same_generation(physical));
    found.fabric.name = plain_name(preset ? preset->name : "neuron", count, is_readable);
    found.notes = notes_on(graph, preset ? &*preset : nullptr);
    order = std::move(recognised.order);
  }
  set_cores(found.fabric, logical_cores(devices, physical, hints));
  // The whole machine in its order; or a subset that is not renumbered from 0 as in a container.
  found.own_numbers =
      (preset && preset->devices == count && std::ranges::is_sorted(order)) || devices.back().number >= count;
  if (!std::ranges::is_sorted(order)) {
    found.notes.push_back("The devices were renumbered: their places follow from their links, not their numbers.");
  }
  for (const int at : order) {
    const SeenDevice& device = devices[static_cast<size_t>(at)];
    found.devices.push_back({.number = device.number, .pci = device.pci, .numa_node = device.numa_node});
  }
  return found;
}

bool all_readable(const std::vector<SeenDevice>& devices) {
  return !devices.empty() &&
         std::ranges::all_of(devices, [](const SeenDevice& device) { return device.neighbours.has_value(); });
}

// Data from neuron-ls that the driver's files lack.
void add_addresses(const NeuronListing& listing, std::vector<SeenDevice>& devices) {
  for (SeenDevice& device : devices) {
    const auto known = std::ranges::find(listing.devices, device.number, &SeenDevice::number);
    if (known == listing.devices.end()) continue;
    device.pci = known->pci;
    device.numa_node = known->numa_node;
    device.cores_per_logical = known->cores_per_logical;
  }
}

}  // namespace

NeuronHints neuron_hints(const std::function<const char*(const char* name)>& environment) {
  NeuronHints hints;
  for (const char* name : {"NEURON_LOGICAL_NC_CONFIG", "NEURON_RT_VIRTUAL_CORE_SIZE"}) {
    const char* text = environment(name);
    if (text == nullptr || *text == '\0') continue;
    const int64_t value = integer_from(trimmed(text)).value_or(0);
    if (value == 1 || value == 2) {
      hints.cores_per_logical = static_cast<int>(value);
    } else {
      log(LogLevel::Warn, "%s=%s: expected 1 or 2; ignored", name, text);
    }
    break;
  }
  return hints;
}

std::optional<NeuronFound> discover_neuron(const SysfsRoot& tree, const std::string& instance_type,
                                           const NeuronHints& hints) {
  std::vector<SeenDevice> devices = read_driver(tree);
  const bool is_readable = all_readable(devices);
  std::optional<NeuronListing> listing = read_listing(tree);
  if (!listing && !is_readable) listing = run_neuron_ls(tree, hints);
  if (listing && !is_readable) devices = listing->devices;
  if (listing) add_addresses(*listing, devices);
  const std::string type = instance_type.empty() && listing ? listing->instance_type : instance_type;
  const std::optional<Fabric> preset = preset_of(type);
  if (devices.size() > kMostDevices || (devices.empty() && !preset)) return std::nullopt;
  NeuronFound found = devices.empty() ? assume(*preset, hints) : build(devices, preset, hints);
  found.instance_type = type;
  return found;
}

}  // namespace ccom
