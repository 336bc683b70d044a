// SPDX-License-Identifier: Apache-2.0
//
// Room-private: parses the output of neuron-ls in all known formats: JSON (`neuron-ls -j`) with and without core
// numbers, logical cores and instance type, and the table of releases without JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ccom {

// A Neuron device as reported by a driver or tool.
struct SeenDevice {
  int number = 0;                                // N of /dev/neuronN
  int64_t physical_cores = 0;                    // 0: unknown
  int cores_per_logical = 0;                     // of the runtime, 1 or 2; 0: unknown
  std::optional<std::set<int>> neighbours = {};  // numbers; absent: not readable
  std::string pci = {};                          // "0000:cc:00.0", "" unknown
  int numa_node = -1;
  friend bool operator==(const SeenDevice&, const SeenDevice&) = default;
};

struct NeuronListing {
  std::string instance_type;        // "" if unknown
  std::vector<SeenDevice> devices;  // ascending, unique numbers
};

// "12, 3, 4, 1", or only white space; absent if malformed.
std::optional<std::set<int>> parse_neighbours(std::string_view text);

// Nothing if the text is in none of these formats. Missing or implausible fields keep their defaults.
std::optional<NeuronListing> parse_neuron_ls(std::string_view text);

}  // namespace ccom
