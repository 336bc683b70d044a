// SPDX-License-Identifier: Apache-2.0
//
// Shapes are known by their links: shuffled ones are found again and given an order in which the links are the shape's;
// graphs that are nearly a shape are not taken for it.
#include "topology/recognise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace ccom {
namespace {

using testing::ElementsAre;

std::vector<int> shuffled(int devices, unsigned seed) {
  std::vector<int> order(static_cast<size_t>(devices));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

std::vector<Edge> renamed(std::vector<Edge> edges, const std::vector<int>& names) {
  for (auto& [a, b] : edges) {
    a = names[static_cast<size_t>(a)];
    b = names[static_cast<size_t>(b)];
  }
  std::ranges::sort(edges);
  return edges;
}

TEST(Recognise, FindsShuffledShapes) {
  for (const char* name : {"single", "chain:2", "chain:6", "ring:12", "torus:4x4", "torus:2x4", "torus:3x5", "full:5",
                           "torus:8x8", "torus:2x3x4", "torus:4x4x4", "torus:16x16"}) {
    const Fabric fabric = *make_fabric(name);
    for (unsigned seed = 0; seed < 20; ++seed) {
      const auto edges = renamed(edges_of(fabric), shuffled(fabric.devices, seed));
      const Recognised found = recognise(fabric.devices, edges);
      ASSERT_EQ(found.shape, fabric.shape) << name << " seed " << seed;
      std::vector<int> dims = found.dims;
      std::vector<int> wanted = fabric.dims;
      std::ranges::sort(dims);
      std::ranges::sort(wanted);
      EXPECT_EQ(dims, wanted) << name;
      EXPECT_EQ(renamed(edges_of(found.shape, found.dims), found.order), edges) << name << " seed " << seed;
    }
  }
}

TEST(Recognise, KeepsNumbersThatFit) {
  const Fabric torus = *make_fabric("torus:4x4");
  EXPECT_TRUE(std::ranges::is_sorted(recognise(16, edges_of(torus)).order));
}

TEST(Recognise, TakesNoGraphForAShapeThatItIsNot) {
  std::vector<Edge> edges = edges_of(*make_fabric("torus:4x4"));
  std::erase(edges, Edge(0, 12));
  std::erase(edges, Edge(12, 0));
  EXPECT_EQ(recognise(16, edges).shape, Fabric::Shape::Other);
  // Two rings of eight have as many links, and as many at each device, as one of sixteen.
  std::vector<Edge> rings;
  for (int i = 0; i < 16; ++i) {
    const int next = i / 8 * 8 + (i + 1) % 8;
    rings.emplace_back(i, next);
    rings.emplace_back(next, i);
  }
  std::ranges::sort(rings);
  EXPECT_EQ(recognise(16, rings).shape, Fabric::Shape::Other);
  EXPECT_FALSE(is_connected(16, rings));
  // A twisted torus: every device has four links, but the columns close one further.
  std::vector<Edge> twisted;
  for (int device = 0; device < 16; ++device) {
    const int down = device < 12 ? device + 4 : (device + 1) % 4;
    for (const int other : {device / 4 * 4 + (device + 1) % 4, down}) {
      twisted.emplace_back(device, other);
      twisted.emplace_back(other, device);
    }
  }
  std::ranges::sort(twisted);
  EXPECT_EQ(recognise(16, twisted).shape, Fabric::Shape::Other);
  EXPECT_TRUE(is_connected(16, twisted));
  EXPECT_EQ(recognise(4, {}).shape, Fabric::Shape::Other);
}

// Random graphs in which every device has four links: an answer comes soon, whatever it is.
TEST(Recognise, GivesUpInTime) {
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::vector<int> ends;
    for (int i = 0; i < 256 * 4; ++i) ends.push_back(i / 4);
    std::shuffle(ends.begin(), ends.end(), std::mt19937(seed));
    std::vector<Edge> edges;
    for (size_t i = 0; i < ends.size(); i += 2) {
      if (ends[i] == ends[i + 1]) continue;
      edges.emplace_back(ends[i], ends[i + 1]);
      edges.emplace_back(ends[i + 1], ends[i]);
    }
    std::ranges::sort(edges);
    edges.erase(std::ranges::unique(edges).begin(), edges.end());
    EXPECT_EQ(recognise(256, edges).shape, Fabric::Shape::Other) << seed;
  }
}

}  // namespace
}  // namespace ccom
