// SPDX-License-Identifier: Apache-2.0
//
// Room-private: fabrics of machines that one can rent, from presets.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.h"

namespace ccom {

bool is_preset(std::string_view name);
// An UltraServer may name one of its modes: "trn2-ultraserver:x2h".
Result<Fabric> make_preset(std::string_view name);

// Where a machine's devices and cards sit, by device; empty where the preset does not say.
struct PresetSeats {
  std::vector<std::string> bus;       // PCI bus "0000:cc" of the device
  std::vector<std::string> card_bus;  // of the network card that is its own
  std::vector<int> numa_node;
};
PresetSeats preset_seats(std::string_view name);

}  // namespace ccom
