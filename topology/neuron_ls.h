// SPDX-License-Identifier: Apache-2.0
//
// Room-private: what the tool neuron-ls prints, in all forms that its releases have had: JSON (`neuron-ls -j`) with and
// without core numbers, logical cores and instance type, and the table of releases without JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ccom {

// A Neuron device as a driver or a tool shows it.
struct SeenDevice {
  int number = 0;                                // N of /dev/neuronN
  int64_t physical_cores = 0;                    // 0: unknown
  int cores_per_logical = 0;                     // of the runtime, 1 or 2; 0: not said
  std::optional<std::set<int>> neighbours = {};  // numbers; absent: not readable
  std::string pci = {};                          // "0000:cc:00.0", "" unknown
  int numa_node = -1;
  friend bool operator==(const SeenDevice&, const SeenDevice&) = default;
};

struct NeuronListing {
  std::string instance_type;        // "" if it is not said
  std::vector<SeenDevice> devices;  // ascending, each number once
};

// "12, 3, 4, 1", or nothing but white space; absent if it is something else.
std::optional<std::set<int>> parse_neighbours(std::string_view text);

// Nothing if the text is in none of these forms. Fields that are missing or absurd keep their defaults.
std::optional<NeuronListing> parse_neuron_ls(std::string_view text);

}  // namespace ccom
