// SPDX-License-Identifier: Apache-2.0
//
// The human-readable form: one fact per line; not meant to be parsed.
#include "tools/topo/text.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "tools/topo/words.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

std::string bytes_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return printed("%.4g %s", amount, kUnits[unit]);
}

std::string indented(const std::string& text, const std::string& margin) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (text[at] != '\n') result += margin;
    result.append(text, at, end - at);
    at = end;
  }
  return result;
}

std::string without_trailing_spaces(std::string line) {
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

// ---- the picture of a torus ----

// Devices at their places; a number in parentheses is the neighbour beyond the edge.
class Picture {
 public:
  // `first` is the device at the upper left, `last` the one with the most digits.
  Picture(int rows, int columns, int first, int last)
      : rows_(rows), columns_(columns), first_(first), digits_(static_cast<int>(std::to_string(last).size())) {}

  std::string draw() const {
    std::string text;
    const std::string bars = joints();
    if (rows_ > 2) text += beyond(rows_ - 1) + bars;
    for (int row = 0; row < rows_; ++row) text += (row > 0 ? bars : "") + line(row);
    if (rows_ > 2) text += bars + beyond(0);
    return text;
  }

 private:
  std::string inner(int device) const { return printed(" %*d ", digits_, device); }
  std::string outer(int device) const { return printed("%*s", digits_ + 2, printed("(%d)", device).c_str()); }
  std::string margin() const { return std::string(columns_ > 2 ? static_cast<size_t>(digits_) + 4 : 0, ' '); }

  std::string line(int row) const {
    const int first = first_ + row * columns_;
    const bool wraps = columns_ > 2;
    std::string text = wraps ? outer(first + columns_ - 1) + "--" : "";
    for (int column = 0; column < columns_; ++column) text += (column > 0 ? "--" : "") + inner(first + column);
    if (wraps) text += "--" + printed("(%d)", first);
    return without_trailing_spaces(text) + "\n";
  }
  std::string joints() const {
    std::string text = margin();
    for (int column = 0; column < columns_; ++column) text += printed("%*s   ", digits_ + 1, "|");
    return without_trailing_spaces(text) + "\n";
  }
  std::string beyond(int row) const {
    std::string text = margin();
    for (int column = 0; column < columns_; ++column) text += outer(first_ + row * columns_ + column) + "  ";
    return without_trailing_spaces(text) + "\n";
  }

  int rows_;
  int columns_;
  int first_;
  int digits_;
};

// One picture, or one for each layer.
std::string torus_text(const Fabric& fabric) {
  const size_t n = fabric.dims.size();
  const int rows = fabric.dims[n - 2];
  const int columns = fabric.dims[n - 1];
  std::string text;
  for (int first = 0; first < fabric.devices; first += rows * columns) {
    text += "\n";
    if (n == 3)
      text += printed("  layer %d of %d, joined to those of the same place above and below\n\n",
                      first / (rows * columns), fabric.dims[0]);
    text += indented(Picture(rows, columns, first, fabric.devices - 1).draw(), "  ");
  }
  return text + "\n";
}

// ---- a fabric ----

bool is_uniform(const Fabric& fabric) {
  return std::ranges::all_of(fabric.links, [&](const Link& link) { return link.speed == fabric.links.front().speed; });
}

// "   5  1 4 6 9" for each device; with speeds only if they differ.
std::string neighbours_text(const Fabric& fabric, bool with_speeds) {
  std::string text = "  device  neighbours\n";
  auto link = fabric.links.begin();
  for (int device = 0; device < fabric.devices; ++device) {
    text += printed("  %6d ", device);
    for (; link != fabric.links.end() && link->from == device; ++link) {
      text += " " + std::to_string(link->to);
      if (with_speeds) text += " (" + text_of(link->speed) + ")";
    }
    text = without_trailing_spaces(text) + "\n";
  }
  return text;
}

// ---- a host ----

std::string text_of(const Cache& cache) {
  std::string text = printed("L%d ", cache.level) + bytes_text(cache.size_bytes);
  if (cache.shared_by_cpus > 1) text += printed(" by %d cpus", cache.shared_by_cpus);
  return text;
}

std::string text_of(const Nic& nic) {
  std::string text = nic.name + " " + nic.kind;
  text += nic.bytes_per_second > 0 ? printed(", %.4g GB/s", nic.bytes_per_second / 1e9) : ", speed unknown";
  if (nic.numa_node >= 0) text += printed(", NUMA node %d", nic.numa_node);
  if (!nic.pci.empty()) text += ", " + nic.pci;
  return text;
}

// Places next to the driver's numbers, addresses and cards.
std::string neuron_devices_text(const std::vector<NeuronDevice>& devices) {
  std::string text = "  place  /dev/neuron  pci           NUMA  nearest cards\n";
  for (size_t place = 0; place < devices.size(); ++place) {
    const NeuronDevice& device = devices[place];
    const std::string numa = device.numa_node < 0 ? "-" : std::to_string(device.numa_node);
    text += printed("  %5zu  %11d  %-12s  %4s  ", place, device.number, device.pci.empty() ? "-" : device.pci.c_str(),
                    numa.c_str()) +
            listed(device.nics, " ");
    text = without_trailing_spaces(text) + "\n";
  }
  return text;
}

template <typename T>
std::string list_text(const std::vector<T>& values, const char* separator) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : separator) + text_of(value);
  return text.empty() ? "none known" : text;
}

// The description of a host without its first line, indented by two spaces.
std::string body_of(const Host& host) {
  const auto or_unknown = [](const std::string& text) { return text.empty() ? "unknown" : text; };
  std::string text = "  id:        " + host.id + "\n";
  text += "  instance:  " + or_unknown(host.instance_type) + "\n";
  text += "  cpu:       " + or_unknown(host.cpu_model) + ", " + counted(host.cpus, "cpu") + " for this job, " +
          counted(host.numa_nodes, "NUMA node") + "\n";
  text += "  memory:    " + (host.memory_bytes > 0 ? bytes_text(host.memory_bytes) : "unknown") + "\n";
  text += "  caches:    " + list_text(host.caches, ", ") + "\n";
  text += "  nics:      " + list_text(host.nics, "\n             ") + "\n";
  const LinkSpeed& uplinks = host.rack.uplinks;
  if (!host.rack.name.empty()) {
    text += "  rack:      " + host.rack.name;
    text += host.rack.has_speed() ? printed(", uplinks %g Mbit/s, %g ms one way\n", uplinks.bytes_per_second * 8e-6,
                                            uplinks.latency_ns * 1e-6)
                                  : printed(", taper %g\n", host.rack.taper);
  }
  for (const std::string& note : host.notes)
    text += (&note == host.notes.data() ? "  notes:     " : "             ") + note + "\n";
  if (host.neuron) text += "  neuron devices:\n" + indented(to_text(*host.neuron), "    ");
  if (!host.neuron_devices.empty()) text += indented(neuron_devices_text(host.neuron_devices), "    ");
  if (host.imposed) text += "  imposed topology:\n" + indented(to_text(*host.imposed), "    ");
  return text;
}

// Which ranks are bound to which memory and cache; nothing if none is.
std::string bindings_text(const Topology& topology, const std::vector<Rank>& members) {
  std::map<std::pair<int, int>, std::vector<Rank>> bound;
  for (const Rank rank : members) {
    const Place& place = topology.ranks[static_cast<size_t>(rank)];
    bound[{place.numa_node, place.cache_group}].push_back(rank);
  }
  if (bound.size() == 1 && bound.begin()->first == std::pair(-1, -1)) return "";
  std::string text;
  for (const auto& [where, ranks] : bound) {
    text += where.first >= 0 ? printed("    NUMA node %d", where.first) : "    no one NUMA node";
    if (where.second >= 0) text += printed(", cache of cpu %d", where.second);
    text += ": " + ranges(ranks) + "\n";
  }
  return text;
}

std::string places_text(const Topology& topology, int host) {
  const std::vector<Rank> members = topology.ranks_of(host);
  std::string text = "  ranks:     " + ranges(members) + "\n" + bindings_text(topology, members);
  const auto on_device = ranks_by_device(topology, host);
  for (size_t device = 0; device < on_device.size(); ++device) {
    if (!on_device[device].empty()) text += printed("    device %zu: ", device) + ranges(on_device[device]) + "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const Fabric& fabric) {
  std::string text = fabric.name + ": " + shape_text(fabric) + ", " + counted(fabric.devices, "device") + " with " +
                     counted(fabric.cores_per_device, "core") + " each\n";
  text += "  inside a device: " + text_of(fabric.inside_device) + "\n";
  for (const Uplink& uplink : fabric.uplinks) {
    text += "  uplink of " + ranges(uplink.devices) + ": " + text_of(uplink.speed) + "\n";
  }
  if (fabric.links.empty()) return text + "  no links\n";
  const bool uniform = is_uniform(fabric);
  text += "  " + counted(fabric.links.size(), "directed link");
  text += uniform ? " of " + text_of(fabric.links.front().speed) + "\n" : " of different speed\n";
  if (fabric.shape == Fabric::Shape::Full && uniform) return text + "  every device is joined to every other\n";
  if (fabric.shape == Fabric::Shape::Switch && uniform) return text + "  every device is joined to the switch\n";
  if (fabric.shape == Fabric::Shape::Torus) text += torus_text(fabric);
  return text + neighbours_text(fabric, !uniform);
}

std::string to_text(const Host& host) {
  return "host " + (host.name.empty() ? "without a name" : host.name) + "\n" + body_of(host);
}

std::string to_text(const Topology& topology) {
  std::string text = counted(topology.nranks(), "rank") + " on " + counted(topology.hosts.size(), "host") + "\n";
  text += "  memory:    " + text_of(topology.memory) + " for each pair of ranks of a host\n";
  text += "  network:   " + text_of(topology.network) + " for each host and direction\n";
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
    text += "\nhost " + std::to_string(host) + ": " + topology.hosts[static_cast<size_t>(host)].name + "\n";
    text += places_text(topology, host) + body_of(topology.hosts[static_cast<size_t>(host)]);
  }
  return text;
}

}  // namespace ccom
