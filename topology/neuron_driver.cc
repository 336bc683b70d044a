// SPDX-License-Identifier: Apache-2.0
#include "topology/neuron_driver.h"

#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "base/time.h"
#include "topology/run_tool.h"
#include "topology/shapes.h"

namespace ccom {
namespace {

constexpr char kFolder[] = "sys/devices/virtual/neuron_device";
constexpr char kInstalledTool[] = "/opt/aws/neuron/bin/neuron-ls";
// A machine with 64 devices prints about 30 KiB, plus one line per process.
constexpr size_t kMostListingBytes = size_t{4} << 20;

}  // namespace

std::vector<SeenDevice> read_driver(const SysfsRoot& tree) {
  std::vector<SeenDevice> devices;
  for (const std::string& name : tree.list(kFolder)) {
    const auto number = numbered(name, "neuron");
    if (!number) continue;
    const std::string folder = kFolder + ("/" + name);
    const std::optional<std::string> text = tree.text(folder + "/connected_devices");
    const int64_t cores = tree.integer(folder + "/core_count").value_or(0);
    devices.push_back({.number = *number,
                       .physical_cores = cores > 0 && cores <= kMaxCoresPerDevice ? cores : 0,
                       .neighbours = text ? parse_neighbours(*text) : std::nullopt});
  }
  std::ranges::sort(devices, {}, &SeenDevice::number);
  const auto is_same = [](const SeenDevice& a, const SeenDevice& b) { return a.number == b.number; };
  devices.erase(std::unique(devices.begin(), devices.end(), is_same), devices.end());  // neuron1, neuron01
  return devices;
}

std::optional<NeuronListing> read_listing(const SysfsRoot& tree) {
  for (const char* name : {"/neuron-ls.json", "/neuron-ls.txt"}) {
    if (tree.is_live()) return std::nullopt;
    const Result<std::string> text = read_file(tree.root() + name, kMostListingBytes);
    if (!text) continue;
    if (auto listing = parse_neuron_ls(*text)) return listing;
    log(LogLevel::Warn, "%s%s: neither the JSON nor the table of neuron-ls; ignored", tree.root().c_str(), name);
  }
  return std::nullopt;
}

std::optional<NeuronListing> run_neuron_ls(const SysfsRoot& tree, const NeuronHints& hints) {
  const std::string tool = hints.tool.empty() && tree.is_live() ? kInstalledTool : hints.tool;
  if (tool.empty() || access(tool.c_str(), X_OK) != 0) {
    if (!hints.tool.empty()) log(LogLevel::Warn, "CCOM_NEURON_LS=%s: no such program", hints.tool.c_str());
    return std::nullopt;
  }
  const Deadline deadline = Deadline::after_ms(hints.tool_timeout_ms);
  for (const auto& arguments : {std::vector<std::string>{tool, "-j"}, {tool}}) {
    const Result<std::string> text = run_tool(arguments, kMostListingBytes, deadline);
    if (!text) {
      // Exit code 1: no driver; expected.
      const bool is_usual = text.error().code() == Code::SystemError;
      log(is_usual ? LogLevel::Info : LogLevel::Warn, "%s", text.error().message().c_str());
      if (!is_usual) return std::nullopt;
      continue;
    }
    if (auto listing = parse_neuron_ls(*text)) return listing;
    log(LogLevel::Warn, "run %s: the output is neither the expected JSON nor the table; ignored", tool.c_str());
  }
  return std::nullopt;
}

}  // namespace ccom
