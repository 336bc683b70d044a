// SPDX-License-Identifier: Apache-2.0
#include "topology/shapes.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace ccom {
namespace {

struct ShapeName {
  Fabric::Shape shape;
  std::string_view name;
};
constexpr std::array kShapeNames = {
    ShapeName{Fabric::Shape::Single, "single"}, ShapeName{Fabric::Shape::Ring, "ring"},
    ShapeName{Fabric::Shape::Chain, "chain"},   ShapeName{Fabric::Shape::Torus, "torus"},
    ShapeName{Fabric::Shape::Full, "full"},     ShapeName{Fabric::Shape::Other, "other"},
};

int count_dims(Fabric::Shape shape) {
  switch (shape) {
    case Fabric::Shape::Single:
    case Fabric::Shape::Other: return 0;
    case Fabric::Shape::Torus: return 2;
    case Fabric::Shape::Ring:
    case Fabric::Shape::Chain:
    case Fabric::Shape::Full: return 1;
  }
  return 0;
}

// A set of edges that keeps both directions and no loops.
struct Graph {
  std::set<Edge> edges;
  void join(int a, int b) {
    if (a == b) return;
    edges.emplace(a, b);
    edges.emplace(b, a);
  }
};

void join_torus(Graph& graph, int rows, int columns) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const int device = row * columns + column;
      graph.join(device, row * columns + (column + 1) % columns);
      graph.join(device, (row + 1) % rows * columns + column);
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
  const int expected = count_dims(shape);
  const std::string name(name_of(shape));
  if (static_cast<int>(dims.size()) != expected) {
    return "a " + name + " has " + std::to_string(expected) + " dims, not " + std::to_string(dims.size());
  }
  if (shape == Fabric::Shape::Single && devices != 1) return "a single has one device";
  if (expected == 0) return "";
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
    case Fabric::Shape::Torus: join_torus(graph, dims[0], dims[1]); break;
    case Fabric::Shape::Ring: join_torus(graph, 1, dims[0]); break;
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

Fabric make_shape(std::string name, Fabric::Shape shape, std::vector<int> dims, LinkSpeed link) {
  Fabric fabric;
  fabric.name = std::move(name);
  fabric.shape = shape;
  fabric.devices = std::accumulate(dims.begin(), dims.end(), 1, [](int a, int b) { return a * b; });
  fabric.inside_device = kInsideDevice;
  for (const auto& [from, to] : edges_of(shape, dims)) fabric.links.push_back({from, to, link});
  fabric.dims = std::move(dims);
  return fabric;
}

}  // namespace ccom
