// SPDX-License-Identifier: Apache-2.0
//
// Room-private: shapes as graphs. Used by presets, generic shapes, the JSON checks and discovery, so that "torus 4x4"
// is the same graph everywhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/topology.h"

namespace ccom {

// Limits on a fabric, so that a typing error in a file or name gives an error instead of exhausting memory. The links
// of a full fabric grow with the square of its devices.
constexpr int kMaxDevices = 16384;
constexpr int kMaxFullDevices = 256;
constexpr int kMaxSwitches = 1024;
constexpr int kMaxCoresPerDevice = 1024;
constexpr size_t kMaxTopologyBytes = size_t{64} << 20;  // of a file

// A NeuronLink hop takes 1 to 2 us according to the Neuron documentation; this is the mean.
constexpr double kHopLatencyNs = 1500;
// Links of generic shapes: NeuronLink-v2 (48 GiB/s per direction), rounded.
constexpr LinkSpeed kGenericLink{.latency_ns = kHopLatencyNs, .bytes_per_second = 50e9};
// Cores of one device communicate through its memory, without a link hop; used if a preset has no figure. Half a hop
// for the latency is an estimate.
constexpr LinkSpeed kInsideDevice{.latency_ns = kHopLatencyNs / 2, .bytes_per_second = 200e9};
// Writing a DMA descriptor and ringing its doorbell; an estimate. Reductions happen on the way into memory.
constexpr Costs kDeviceCosts{.post_ns = 100, .reduce_bytes_per_second = 0};
// Memory to memory over EFA: 15 us according to the Neuron documentation; other libraries assume about 1 us of the
// card's time per message.
constexpr double kUplinkLatencyNs = 15000;
constexpr double kUplinkPostNs = 1000;

// From a rack to another: two more switches and longer cables; an estimate.
constexpr double kRackLatencyNs = 1000;
constexpr double kMostTaper = 1000;
// What stands behind a rack's name: "/4", "/2.5": from 1 to kMostTaper; "@200Mbit,25ms" or "@1Gbit,300us": bandwidth
// and latency of the uplinks, one way; "": no taper. Without a name. nullopt: none of these.
std::optional<Rack> rack_speed_from(std::string_view text);
constexpr double kLongestRackLatencyNs = 10e9;
// "25Gbit" -> bytes per second; 0: not a speed.
double speed_from(std::string_view text);

using Edge = std::pair<int, int>;  // directed

std::string_view name_of(Fabric::Shape shape);  // "torus"
std::optional<Fabric::Shape> shape_from(std::string_view name);

// The error of a topology that was asked for by `name`.
Status wrong_topology(std::string_view name, const std::string& what);

// "" if `dims` are valid for `shape` and yield `devices` devices, otherwise the reason.
std::string wrong_with_dims(Fabric::Shape shape, const std::vector<int>& dims, int devices);
// All edges, sorted, in both directions; a dimension of size two gives one neighbour, of size one none. Empty for
// Other. A switch is the vertex after the last device. `dims` must be valid.
std::vector<Edge> edges_of(Fabric::Shape shape, const std::vector<int>& dims);
std::vector<Edge> edges_of(const Fabric& fabric);  // of its links

// The next vertex from `at` to `to` in a grid of `dims` whose rows are closed (or open: a chain), the shorter way,
// dimension by dimension, the fastest-varying one first.
struct GridStep {
  int to = 0;
  bool passes_end =
      false;  // with this step or a later one in this dimension: from the last place to the first, or back
};
GridStep step_in_grid(const std::vector<int>& dims, bool closed, int at, int to);

// Every link has speed `link`; one core per device.
Fabric make_shape(std::string name, Fabric::Shape shape, std::vector<int> dims, LinkSpeed link);

// The speeds that merge() assumes for unmeasured hosts (merge.cc).
void set_default_speeds(Topology& topology);

}  // namespace ccom
