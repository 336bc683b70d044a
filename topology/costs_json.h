// SPDX-License-Identifier: Apache-2.0
//
// Room-private: costs as JSON objects with the members' names. What a text leaves out keeps its default; what is
// default is left out.
#pragma once

#include <utility>

#include "base/measured_costs.h"
#include "base/memory_costs.h"
#include "base/network_costs.h"
#include "topology/json_reader.h"
#include "topology/topology.h"

namespace ccom {

std::string json_text(const MemoryCosts& costs);
std::string json_text(const NetworkCosts& costs);
std::string json_text(const OwnCosts& costs);
MemoryCosts read_memory_costs(const JsonAt& at);
NetworkCosts read_network_costs(const JsonAt& at);
OwnCosts read_own_costs(const JsonAt& at);
MeasuredCosts read_measured_costs(const JsonAt& at);

// Of Costs, written where they differ from none.
inline constexpr std::pair<const char*, double Costs::*> kProtocolCosts[] = {
    {"receive_ns", &Costs::receive_ns},
    {"reduce_ns", &Costs::reduce_ns},
    {"rendezvous_bytes", &Costs::rendezvous_bytes},
    {"rendezvous_ns", &Costs::rendezvous_ns},
    {"copy_bytes_per_second", &Costs::copy_bytes_per_second},
};

}  // namespace ccom
