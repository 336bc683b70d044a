// SPDX-License-Identifier: Apache-2.0
//
// Room-private: fabrics of machines that one can rent, from presets.json.
#pragma once

#include <string_view>

#include "topology/topology.h"

namespace ccom {

bool is_preset(std::string_view name);
// An UltraServer may name one of its modes: "trn2-ultraserver:x2h".
Result<Fabric> make_preset(std::string_view name);

}  // namespace ccom
