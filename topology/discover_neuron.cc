// SPDX-License-Identifier: Apache-2.0
//
// What the driver's files say, and what they do not: links are listed in an order that differs between chips (so: a
// set), as root's secret by some driver versions (so: the preset of the instance type), and not at all when a container
// sees only some of the devices (so: no links). Speeds are never there.
#include "topology/discover_neuron.h"

#include <algorithm>
#include <map>
#include <set>

#include "topology/shapes.h"

namespace ccom {
namespace {

constexpr char kFolder[] = "sys/devices/virtual/neuron_device";

// One device as seen; `neighbours` is absent if they cannot be read.
struct Seen {
  int number = 0;
  int64_t physical_cores = 0;  // 0 = unknown
  std::optional<std::set<int>> neighbours;
};

std::optional<std::set<int>> parse_neighbours(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::set<int> neighbours;
  for (const std::string_view part : split(*text, ',')) {
    const auto device = numbered(part, "");
    if (!device) return std::nullopt;
    neighbours.insert(*device);
  }
  return neighbours;
}

std::vector<Seen> look(const Tree& tree) {
  std::vector<Seen> devices;
  for (const std::string& name : tree.list(kFolder)) {
    const auto number = numbered(name, "neuron");
    if (!number) continue;
    const std::string folder = kFolder + ("/" + name);
    devices.push_back({.number = *number,
                       .physical_cores = tree.integer(folder + "/core_count").value_or(0),
                       .neighbours = parse_neighbours(tree.text(folder + "/connected_devices"))});
  }
  std::ranges::sort(devices, {}, &Seen::number);
  return devices;
}

// Edges between visible devices, by position. A link is there if both ends report it: in a container the numbers that
// one device reports may belong to devices that are hidden or renumbered.
std::vector<Edge> reported_edges(const std::vector<Seen>& devices) {
  std::map<int, int> position;
  for (const Seen& device : devices) position.emplace(device.number, static_cast<int>(position.size()));
  std::set<Edge> half;
  for (const Seen& device : devices) {
    if (!device.neighbours) continue;
    for (const int neighbour : *device.neighbours) {
      const auto found = position.find(neighbour);
      if (found != position.end() && neighbour != device.number) half.emplace(position[device.number], found->second);
    }
  }
  std::vector<Edge> edges;
  std::ranges::copy_if(half, std::back_inserter(edges), [&half](const Edge& edge) {
    return half.contains({edge.second, edge.first});
  });
  return edges;
}

// The first shape, in this numbering, that is the graph. Two joined devices are a chain.
void name_shape(Fabric& fabric, const std::vector<Edge>& edges) {
  const int n = fabric.devices;
  std::vector<std::pair<Fabric::Shape, std::vector<int>>> candidates = {
      {Fabric::Shape::Chain, {n}}, {Fabric::Shape::Ring, {n}}, {Fabric::Shape::Full, {n}}};
  for (int rows = 2; rows <= n / 2; ++rows) {
    if (n % rows == 0) candidates.push_back({Fabric::Shape::Torus, {rows, n / rows}});
  }
  if (n == 1) candidates = {{Fabric::Shape::Single, {}}};
  fabric.shape = Fabric::Shape::Other;
  for (auto& [shape, dims] : candidates) {
    if (!wrong_with_dims(shape, dims, n).empty() || edges_of(shape, dims) != edges) continue;
    fabric.shape = shape;
    fabric.dims = dims;
    return;
  }
}

// The chip tells its generation by its physical cores: 2 on Trainium and Inferentia2, 8 on Trainium2 and later, which
// join two physical cores into a logical one by default. The generation gives the speed of its links.
int logical_cores(int64_t physical) { return static_cast<int>(physical >= 8 ? physical / 2 : physical); }

LinkSpeed speed_by_cores(int64_t physical) {
  const Result<Fabric> like = make_fabric(physical >= 8 ? "trn2.48xlarge" : "trn1.32xlarge");
  return like && !like->links.empty() ? like->links.front().speed : kGenericLink;
}

std::optional<Fabric> preset_of(const std::string& instance_type) {
  const auto names = preset_names();  // asked first: the text comes from a file and must not be taken for a path
  if (std::ranges::find(names, instance_type) == names.end()) return std::nullopt;
  Result<Fabric> preset = make_fabric(instance_type);
  if (!preset) return std::nullopt;
  return *std::move(preset);
}

}  // namespace

std::optional<Fabric> discover_neuron(const Tree& tree, const std::string& instance_type) {
  const std::vector<Seen> devices = look(tree);
  if (devices.empty() || devices.size() > kMaxDevices) return std::nullopt;
  const int count = static_cast<int>(devices.size());
  const bool is_readable =
      std::ranges::all_of(devices, [](const Seen& device) { return device.neighbours.has_value(); });
  const std::vector<Edge> edges = is_readable ? reported_edges(devices) : std::vector<Edge>();
  const std::optional<Fabric> preset = preset_of(instance_type);
  if (preset && preset->devices == count && (!is_readable || edges == edges_of(*preset))) return preset;

  const int64_t physical = std::clamp<int64_t>(devices.front().physical_cores, 0, kMaxCoresPerDevice);
  Fabric fabric;
  fabric.name = (preset ? instance_type : "neuron") + " (" + std::to_string(count) +
                (count == 1 ? " device" : " devices") + (is_readable ? ")" : ", links not readable)");
  fabric.devices = count;
  fabric.cores_per_device = preset ? preset->cores_per_device : std::max(1, logical_cores(physical));
  fabric.inside_device = kInsideDevice;
  const LinkSpeed speed = preset && !preset->links.empty() ? preset->links.front().speed : speed_by_cores(physical);
  for (const auto& [from, to] : edges) fabric.links.push_back({from, to, speed});
  name_shape(fabric, edges);
  return fabric;
}

}  // namespace ccom
