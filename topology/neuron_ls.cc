// SPDX-License-Identifier: Apache-2.0
#include "topology/neuron_ls.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

#include "topology/pci.h"
#include "topology/shapes.h"
#include "topology/sysfs_root.h"

namespace ccom {
namespace {

using nlohmann::json;

constexpr int kMostNumaNodes = 1 << 20;

// An integer written as a number or, like numa_node, as a string.
std::optional<int64_t> integer_in(const json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) return integer_from(trimmed(value.get_ref<const std::string&>()));
  return std::nullopt;
}

int64_t integer_at(const json& object, const char* key, int64_t low, int64_t high, int64_t otherwise) {
  if (!object.contains(key)) return otherwise;
  const auto value = integer_in(object.at(key));
  return value && *value >= low && *value <= high ? *value : otherwise;
}

std::string text_at(const json& object, const char* key) {
  constexpr size_t kMostBytes = 256;
  if (!object.contains(key) || !object.at(key).is_string()) return {};
  const auto& text = object.at(key).get_ref<const std::string&>();
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  return is_plain && text.size() <= kMostBytes ? text : "";
}

// Counts the cores shown by the runtime. Releases that do not report the number of physical cores per logical core are
// for chips with two cores, or for Trainium2 with four logical cores.
int64_t physical_cores(int64_t shown, int cores_per_logical) {
  if (cores_per_logical > 0) return shown * cores_per_logical;
  return shown == 4 ? 8 : shown;
}

std::optional<std::set<int>> neighbours_in(const json& device) {
  if (!device.contains("connected_to")) return std::nullopt;
  const json& list = device.at("connected_to");
  std::set<int> neighbours;
  if (list.is_null()) return neighbours;  // chip types without links
  if (!list.is_array()) return std::nullopt;
  for (const json& entry : list) {
    const auto number = integer_in(entry);
    if (!number || *number < 0 || *number >= kMaxDevices) return std::nullopt;
    neighbours.insert(static_cast<int>(*number));
  }
  return neighbours;
}

std::optional<NeuronListing> parse_json_form(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_array() || document.empty() || document.size() > kMaxDevices) return std::nullopt;
  NeuronListing listing;
  for (const json& entry : document) {
    if (!entry.is_object()) return std::nullopt;
    const int64_t number = integer_at(entry, "neuron_device", 0, kMaxDevices - 1, -1);
    if (number < 0) return std::nullopt;
    const int logical = static_cast<int>(integer_at(entry, "logical_neuroncore_config", 1, 2, 0));
    const int64_t shown = integer_at(entry, "nc_count", 0, kMaxCoresPerDevice, 0);
    if (listing.instance_type.empty()) listing.instance_type = text_at(entry, "instance_type");
    listing.devices.push_back({.number = static_cast<int>(number),
                               .physical_cores = physical_cores(shown, logical),
                               .cores_per_logical = logical,
                               .neighbours = neighbours_in(entry),
                               .pci = normalised_pci(text_at(entry, "bdf")),
                               .numa_node = static_cast<int>(integer_at(entry, "numa_node", -1, kMostNumaNodes, -1))});
  }
  return listing;
}

// ---- the table ----

// The cells of "| a | b |", including empty ones.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  line = trimmed(line);
  for (line.remove_prefix(1); !line.empty();) {
    const size_t end = std::min(line.find('|'), line.size());
    cells.emplace_back(trimmed(line.substr(0, end)));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return cells;
}

// Parses line by line: titles, in one or more lines, precede the first row with a number.
class TableReader {
 public:
  void read(std::string_view line) {
    line = trimmed(line);
    if (const auto value = header(line, "instance-type:")) listing_.instance_type = *value;
    if (const auto value = header(line, "logical-neuroncore-config:")) logical_ = integer_from(*value).value_or(0);
    if (line.starts_with('|')) read_cells(cells_of(line));
  }
  std::optional<NeuronListing> finish() {
    if (listing_.devices.empty()) return std::nullopt;
    return std::move(listing_);
  }

 private:
  static std::optional<std::string> header(std::string_view line, std::string_view key) {
    if (!line.starts_with(key)) return std::nullopt;
    return std::string(trimmed(line.substr(key.size())));
  }
  void read_cells(const std::vector<std::string>& cells) {
    const auto number = cells.empty() ? std::nullopt : numbered(cells.front(), "");
    if (number && *number < kMaxDevices) return add_device(*number, cells);
    if (!listing_.devices.empty()) return;  // another process of the device above
    titles_.resize(std::max(titles_.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) titles_[i] += (titles_[i].empty() ? "" : " ") + cells[i];
  }
  std::string cell(const std::vector<std::string>& cells, const char* title) const {
    const auto column = static_cast<size_t>(std::ranges::find(titles_, title) - titles_.begin());
    return column < cells.size() ? cells[column] : "";
  }
  void add_device(int number, const std::vector<std::string>& cells) {
    if (std::ranges::find(titles_, "CONNECTED DEVICES") == titles_.end()) return;  // another table
    const int64_t in_column = integer_from(cell(cells, "LOGICAL NC")).value_or(0);
    const int64_t said = in_column > 0 ? in_column : logical_;
    const int logical = said == 1 || said == 2 ? static_cast<int>(said) : 0;
    const int64_t shown = integer_from(cell(cells, "NEURON CORES")).value_or(0);
    const int64_t numa = integer_from(cell(cells, "NUMA NODE")).value_or(-1);
    listing_.devices.push_back({.number = number,
                                .physical_cores = physical_cores(std::clamp<int64_t>(shown, 0, 1024), logical),
                                .cores_per_logical = logical,
                                .neighbours = parse_neighbours(cell(cells, "CONNECTED DEVICES")),
                                .pci = normalised_pci(cell(cells, "PCI BDF")),
                                .numa_node = static_cast<int>(numa >= 0 && numa < kMostNumaNodes ? numa : -1)});
  }

  NeuronListing listing_;
  std::vector<std::string> titles_;
  int64_t logical_ = 0;
};

std::optional<NeuronListing> parse_table_form(std::string_view text) {
  TableReader reader;
  for (const std::string_view line : split(text, '\n')) reader.read(line);
  return reader.finish();
}

}  // namespace

std::optional<std::set<int>> parse_neighbours(std::string_view text) {
  std::set<int> neighbours;
  for (const std::string_view part : split(text, ',')) {
    const auto number = numbered(part, "");
    if (!number) return std::nullopt;
    neighbours.insert(*number);
  }
  return neighbours;
}

std::optional<NeuronListing> parse_neuron_ls(std::string_view text) {
  text = trimmed(text);
  auto listing = text.starts_with('[') ? parse_json_form(text) : parse_table_form(text);
  if (!listing) return std::nullopt;
  std::ranges::sort(listing->devices, {}, &SeenDevice::number);
  const auto twice = std::ranges::adjacent_find(listing->devices, {}, &SeenDevice::number);
  if (twice != listing->devices.end()) return std::nullopt;
  return listing;
}

}  // namespace ccom
