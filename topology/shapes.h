// SPDX-License-Identifier: Apache-2.0
//
// Room-private: what a shape means as a graph. Presets, generic shapes, the JSON checks and discovery all ask here, so
// that "torus 4x4" is the same graph everywhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/topology.h"

namespace ccom {

// Bounds on a fabric, so that a slip in a file or a name costs an error and not the machine's memory. The links of a
// full fabric grow with the square of its devices.
constexpr int kMaxDevices = 16384;
constexpr int kMaxFullDevices = 256;
constexpr int kMaxSwitches = 1024;
constexpr int kMaxCoresPerDevice = 1024;

// One hop of NeuronLink takes 1 to 2 us according to the Neuron documentation; the middle.
constexpr double kHopLatencyNs = 1500;
// Links of generic shapes: NeuronLink-v2 (48 GiB/s each way), rounded.
constexpr LinkSpeed kGenericLink{.latency_ns = kHopLatencyNs, .bytes_per_second = 50e9};
// Cores of one device meet in its memory, without a hop on a link; where a preset does not say how fast that is. Half a
// hop for the latency is a guess.
constexpr LinkSpeed kInsideDevice{.latency_ns = kHopLatencyNs / 2, .bytes_per_second = 200e9};
// A DMA descriptor is written and its doorbell rung; a guess. Reductions happen on the way into memory.
constexpr Costs kDeviceCosts{.post_ns = 100, .reduce_bytes_per_second = 0};
// Memory to memory over EFA: 15 us by the Neuron documentation; about 1 us of the card's time for each message is what
// other libraries reckon with.
constexpr double kUplinkLatencyNs = 15000;
constexpr double kUplinkPostNs = 1000;

using Edge = std::pair<int, int>;  // directed

std::string_view name_of(Fabric::Shape shape);  // "torus"
std::optional<Fabric::Shape> shape_from(std::string_view name);

// "" if `dims` fit `shape` and give `devices` devices, otherwise what is wrong.
std::string wrong_with_dims(Fabric::Shape shape, const std::vector<int>& dims, int devices);
// All edges, sorted, both directions; a dimension of size two gives one neighbour, of size one none. Empty for Other.
// A switch is the vertex after the last device.
// `dims` must fit.
std::vector<Edge> edges_of(Fabric::Shape shape, const std::vector<int>& dims);
std::vector<Edge> edges_of(const Fabric& fabric);  // of its links

// Every link with speed `link`; one core per device.
Fabric make_shape(std::string name, Fabric::Shape shape, std::vector<int> dims, LinkSpeed link);

// The speeds that merge() gives hosts of which nothing is measured (merge.cc).
void set_default_speeds(Topology& topology);

}  // namespace ccom
