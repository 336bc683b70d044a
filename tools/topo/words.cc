// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/words.h"

#include "base/text.h"
#include "topology/shapes.h"

namespace ccom {

std::string counted(size_t count, const char* noun) { return printed("%zu %s%s", count, noun, count == 1 ? "" : "s"); }
std::string counted(int count, const char* noun) { return counted(static_cast<size_t>(count), noun); }

std::string ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[first]);
    if (last > first) text += "-" + std::to_string(numbers[last]);
    first = last + 1;
  }
  return text;
}

std::string text_of(const LinkSpeed& speed) {
  return printed("%.4g us, %.4g GB/s", speed.latency_ns / 1e3, speed.bytes_per_second / 1e9);
}

std::string shape_text(const Fabric& fabric) {
  std::string text(name_of(fabric.shape));
  for (size_t i = 0; i < fabric.dims.size(); ++i) text += (i == 0 ? " " : "x") + std::to_string(fabric.dims[i]);
  return text;
}

std::string listed(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::vector<std::vector<Rank>> ranks_by_device(const Topology& topology, int host) {
  const auto& fabric = topology.hosts[static_cast<size_t>(host)].imposed;
  std::vector<std::vector<Rank>> on_device(fabric ? static_cast<size_t>(fabric->devices) : 0);
  for (const Rank rank : topology.ranks_of(host)) {
    const auto device = static_cast<size_t>(topology.ranks[static_cast<size_t>(rank)].device);
    if (device < on_device.size()) on_device[device].push_back(rank);
  }
  return on_device;
}

}  // namespace ccom
