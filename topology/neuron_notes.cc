// SPDX-License-Identifier: Apache-2.0
#include "topology/neuron_notes.h"

#include <algorithm>

#include "topology/recognise.h"

namespace ccom {
namespace {

constexpr size_t kMostListed = 8;

// "0-12, 4-8 and 5 more"
std::string list(const std::vector<std::string>& items) {
  std::string text;
  const size_t shown = std::min(items.size(), kMostListed);
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
  if (shown < items.size()) text += " and " + std::to_string(items.size() - shown) + " more";
  return text;
}

std::string plural(size_t count, const char* one, const char* many) { return count == 1 ? one : many; }

// Edges of the preset that are missing between visible devices, by number; nothing if the graph has edges that the
// preset lacks, because then its numbers have another meaning.
struct Difference {
  bool is_comparable = true;
  std::vector<Edge> missing;  // unique, lower number first
};

Difference compare(const SeenGraph& graph, const std::vector<Edge>& whole) {
  std::vector<Edge> seen;
  for (const auto& [a, b] : graph.edges) {
    seen.emplace_back(graph.numbers[static_cast<size_t>(a)], graph.numbers[static_cast<size_t>(b)]);
  }
  std::ranges::sort(seen);
  Difference difference;
  difference.is_comparable = std::ranges::includes(whole, seen);
  for (const Edge& edge : whole) {
    const bool both_visible =
        std::ranges::binary_search(graph.numbers, edge.first) && std::ranges::binary_search(graph.numbers, edge.second);
    if (edge.first < edge.second && both_visible && !std::ranges::binary_search(seen, edge)) {
      difference.missing.push_back(edge);
    }
  }
  return difference;
}

std::string hidden_devices(const SeenGraph& graph, const Fabric& preset) {
  std::vector<std::string> hidden;
  for (int device = 0; device < preset.devices; ++device) {
    if (!std::ranges::binary_search(graph.numbers, device)) hidden.push_back(std::to_string(device));
  }
  std::string text = std::to_string(graph.numbers.size()) + " of the " + std::to_string(preset.devices) +
                     " devices of " + preset.name + " are visible";
  // A container renumbers its devices from 0: then missing numbers have no meaning.
  const bool starts_at_zero = graph.numbers.back() + 1 == static_cast<int>(graph.numbers.size());
  return text + (starts_at_zero ? "." : "; missing: " + list(hidden) + ".");
}

void add_links(const SeenGraph& graph, const Fabric& preset, std::vector<std::string>& notes) {
  const size_t seen = graph.edges.size() / 2;
  const Difference difference = compare(graph, edges_of(preset));
  if (graph.edges.empty() && graph.numbers.size() > 1) {
    notes.push_back("No links are shown; the driver hides them when only some of the devices are visible.");
  } else if (difference.is_comparable && !difference.missing.empty()) {
    std::vector<std::string> names;
    for (const auto& [a, b] : difference.missing) names.push_back(std::to_string(a) + "-" + std::to_string(b));
    notes.push_back(plural(names.size(), "Link ", "Links ") + list(names) + " of " + preset.name +
                    plural(names.size(), " is", " are") + " missing.");
  } else if (!difference.is_comparable) {
    const size_t whole = preset.links.size() / 2;
    notes.push_back("The devices are numbered otherwise than those of " + preset.name + ", and " +
                    std::to_string(seen) + " of its " + std::to_string(whole) + " links are there.");
  }
}

}  // namespace

std::vector<std::string> notes_on(const SeenGraph& graph, const Fabric* preset) {
  std::vector<std::string> notes;
  const auto number = [&](int position) { return std::to_string(graph.numbers[static_cast<size_t>(position)]); };
  const int devices = static_cast<int>(graph.numbers.size());
  if (preset && preset->devices > devices) notes.push_back(hidden_devices(graph, *preset));
  if (preset && preset->devices < devices) {
    notes.push_back(std::to_string(devices) + " devices are visible, more than " + preset->name + " has.");
  }
  if (preset) add_links(graph, *preset, notes);
  for (const auto& [a, b] : graph.one_sided) {
    notes.push_back("Device " + number(a) + " reports a link to " + number(b) +
                    ", which does not report it; left out.");
    if (notes.size() > kMostListed) break;
  }
  if (!graph.edges.empty() && !is_connected(devices, graph.edges)) {
    notes.push_back("The links leave the devices in separate groups.");
  }
  return notes;
}

}  // namespace ccom
