// SPDX-License-Identifier: Apache-2.0
#include "topology/shapes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <set>

#include "base/assert.h"

namespace ccom {
namespace {

struct ShapeName {
  Fabric::Shape shape;
  std::string_view name;
};
constexpr std::array kShapeNames = {
    ShapeName{Fabric::Shape::Single, "single"}, ShapeName{Fabric::Shape::Ring, "ring"},
    ShapeName{Fabric::Shape::Chain, "chain"},   ShapeName{Fabric::Shape::Torus, "torus"},
    ShapeName{Fabric::Shape::Full, "full"},     ShapeName{Fabric::Shape::Switch, "switch"},
    ShapeName{Fabric::Shape::Other, "other"},
};

// The number of dims of each shape.
std::pair<size_t, size_t> count_dims(Fabric::Shape shape) {
  switch (shape) {
    case Fabric::Shape::Single:
    case Fabric::Shape::Other: return {0, 0};
    case Fabric::Shape::Torus: return {2, 3};
    default: return {1, 1};
  }
}

// A set of edges in both directions, without loops.
struct Graph {
  std::set<Edge> edges;
  void join(int a, int b) {
    if (a == b) return;
    edges.emplace(a, b);
    edges.emplace(b, a);
  }
};

// Any number of dims; the last varies fastest.
void join_torus(Graph& graph, const std::vector<int>& dims) {
  CCOM_ASSERT(std::ranges::all_of(dims, [](int dim) { return dim >= 1; }));
  const int devices = std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>());
  int stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    for (int device = 0; device < devices; ++device) {
      const int at = device / stride % dims[d];
      graph.join(device, device + ((at + 1) % dims[d] - at) * stride);
    }
  }
}

}  // namespace

std::string_view name_of(Fabric::Shape shape) { return std::ranges::find(kShapeNames, shape, &ShapeName::shape)->name; }

std::optional<Fabric::Shape> shape_from(std::string_view name) {
  const auto found = std::ranges::find(kShapeNames, name, &ShapeName::name);
  if (found == kShapeNames.end()) return std::nullopt;
  return found->shape;
}

std::string wrong_with_dims(Fabric::Shape shape, const std::vector<int>& dims, int devices) {
  const auto [least, most] = count_dims(shape);
  const std::string name(name_of(shape));
  if (dims.size() < least || dims.size() > most) {
    return "a " + name + " has " + std::to_string(least) + (most > least ? " or " + std::to_string(most) : "") +
           " dims, not " + std::to_string(dims.size());
  }
  if (shape == Fabric::Shape::Single && devices != 1) return "a single has one device";
  if (most == 0) return "";
  int64_t product = 1;
  for (const int dim : dims) {
    if (dim < 1 || dim > kMaxDevices) return "each of the dims must be from 1 to " + std::to_string(kMaxDevices);
    product *= dim;
  }
  if (product != devices) {
    return "the dims give " + std::to_string(product) + " devices, not " + std::to_string(devices);
  }
  if (shape == Fabric::Shape::Full && devices > kMaxFullDevices) {
    return "a full fabric has at most " + std::to_string(kMaxFullDevices) + " devices";
  }
  return "";
}

std::vector<Edge> edges_of(Fabric::Shape shape, const std::vector<int>& dims) {
  Graph graph;
  switch (shape) {
    case Fabric::Shape::Single:
    case Fabric::Shape::Other: break;
    case Fabric::Shape::Torus:
    case Fabric::Shape::Ring: join_torus(graph, dims); break;
    case Fabric::Shape::Switch:
      for (int device = 0; device < dims[0]; ++device) graph.join(device, dims[0]);
      break;
    case Fabric::Shape::Chain:
      for (int device = 1; device < dims[0]; ++device) graph.join(device - 1, device);
      break;
    case Fabric::Shape::Full:
      for (int a = 0; a < dims[0]; ++a) {
        for (int b = 0; b < a; ++b) graph.join(a, b);
      }
      break;
  }
  return {graph.edges.begin(), graph.edges.end()};
}

std::vector<Edge> edges_of(const Fabric& fabric) {
  std::vector<Edge> edges;
  edges.reserve(fabric.links.size());
  for (const Link& link : fabric.links) edges.emplace_back(link.from, link.to);
  return edges;
}

Status wrong_topology(std::string_view name, const std::string& what) {
  return error(ErrorKey::TopologyFile, "topology \"%.*s\": %s", static_cast<int>(name.size()), name.data(),
               what.c_str());
}

GridStep step_in_grid(const std::vector<int>& dims, bool closed, int at, int to) {
  int stride = 1;
  for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) {
    const int size = dims[d];
    const int here = at / stride % size;
    const int there = to / stride % size;
    if (here == there) continue;
    if (!closed) return {at + (there > here ? stride : -stride), false};
    const int ahead = (there - here + size) % size;
    // Both directions are equally long: even places go up, odd ones down, to balance the load.
    const bool up = 2 * ahead != size ? 2 * ahead < size : here % 2 == 0;
    return {at + ((here + (up ? 1 : size - 1)) % size - here) * stride, up ? there < here : there > here};
  }
  return {to, false};
}

Fabric make_shape(std::string name, Fabric::Shape shape, std::vector<int> dims, LinkSpeed link) {
  Fabric fabric;
  fabric.name = std::move(name);
  fabric.shape = shape;
  fabric.devices = std::accumulate(dims.begin(), dims.end(), 1, [](int a, int b) { return a * b; });
  fabric.switches = shape == Fabric::Shape::Switch ? 1 : 0;
  fabric.inside_device = kInsideDevice;
  fabric.costs = kDeviceCosts;
  for (const auto& [from, to] : edges_of(shape, dims)) fabric.links.push_back({from, to, link});
  fabric.dims = std::move(dims);
  return fabric;
}

}  // namespace ccom
