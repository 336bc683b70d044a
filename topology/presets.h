// SPDX-License-Identifier: Apache-2.0
//
// Room-private: fabrics of available machine types, from presets.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/topology.h"

namespace ccom {

bool is_preset(std::string_view name);
// An UltraServer may be followed by a mode: "trn2-ultraserver:x2h".
Result<Fabric> make_preset(std::string_view name);

// The location of a machine's devices and cards, by device; empty if the preset does not contain it.
struct PresetSeats {
  std::vector<std::string> bus;       // PCI bus "0000:cc" of the device
  std::vector<std::string> card_bus;  // of the device's own network card
  std::vector<int> numa_node;
};
PresetSeats preset_seats(std::string_view name);

}  // namespace ccom
