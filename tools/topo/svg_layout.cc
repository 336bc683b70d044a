// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/svg_layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/text.h"
#include "tools/topo/words.h"

namespace ccom {
namespace {

constexpr double kMargin = 90;  // around the devices, for links that go around
constexpr double kColumn = 150;
constexpr double kRow = 124;
// From one layer to the next: to the right and up, so that each is seen behind the one before.
constexpr double kLayerRight = 112;
constexpr double kLayerUp = 62;
constexpr int kChainColumns = 8;

struct Cell {
  int layer = 0;
  int row = 0;
  int column = 0;
};

Cell cell_of(const Fabric& fabric, int device) {
  const size_t n = fabric.dims.size();
  const int columns = fabric.dims[n - 1];
  const int rows = fabric.dims[n - 2];
  return {device / (rows * columns), device / columns % rows, device % columns};
}

Layout lay_out_torus(const Fabric& fabric) {
  const size_t n = fabric.dims.size();
  const int layers = n == 3 ? fabric.dims[0] : 1;
  const double behind_x = kLayerRight * (layers - 1);
  const double behind_y = kLayerUp * (layers - 1);
  Layout layout;
  layout.width = 2 * kMargin + (kColumn + behind_x) * (fabric.dims[n - 1] - 1) + behind_x + kBoxWidth;
  layout.height = 2 * kMargin + (kRow + behind_y) * (fabric.dims[n - 2] - 1) + behind_y + kBoxHeight;
  for (int device = 0; device < fabric.devices; ++device) {
    const Cell cell = cell_of(fabric, device);
    layout.centers.push_back(
        {kMargin + kBoxWidth / 2 + cell.column * (kColumn + behind_x) + cell.layer * kLayerRight,
         kMargin + kBoxHeight / 2 + cell.row * (kRow + behind_y) + behind_y - cell.layer * kLayerUp});
  }
  return layout;
}

// To and fro, so that neighbours stay neighbours.
Layout lay_out_chain(int devices) {
  const int columns = std::min(devices, kChainColumns);
  const int rows = (devices + columns - 1) / columns;
  Layout layout{{}, 2 * kMargin + kColumn * (columns - 1) + kBoxWidth, 2 * kMargin + kRow * (rows - 1) + kBoxHeight};
  for (int device = 0; device < devices; ++device) {
    const int row = device / columns;
    const int column = row % 2 == 0 ? device % columns : columns - 1 - device % columns;
    layout.centers.push_back({kMargin + kBoxWidth / 2 + column * kColumn, kMargin + kBoxHeight / 2 + row * kRow});
  }
  return layout;
}

void add_circle(Layout& layout, int count, double radius, Point center) {
  for (int i = 0; i < count; ++i) {
    const double angle = 2 * std::numbers::pi * i / count - std::numbers::pi / 2;
    layout.centers.push_back({center.x + radius * std::cos(angle), center.y + radius * std::sin(angle)});
  }
}

Layout lay_out_circle(const Fabric& fabric) {
  const auto radius_of = [](int count) {
    return count < 2 ? 0 : std::max(150.0, count * kColumn / 2 / std::numbers::pi);
  };
  const double inner = radius_of(fabric.switches);
  const double outer = std::max(radius_of(fabric.devices), fabric.switches > 1 ? inner + 2 * kRow : 0);
  Layout layout;
  layout.width = 2 * (kMargin + outer) + kBoxWidth;
  layout.height = 2 * (kMargin + outer) + kBoxHeight;
  const Point center{layout.width / 2, layout.height / 2};
  add_circle(layout, fabric.devices, outer, center);
  add_circle(layout, fabric.switches, inner, center);
  return layout;
}

std::string straight(Point a, Point b) { return printed("M%.1f %.1fL%.1f %.1f", a.x, a.y, b.x, b.y); }

// Out at the left, over the row, and in again at the right.
std::string around_row(Point left, Point right) {
  constexpr double kOut = kBoxWidth / 2 + 26;
  constexpr double kOver = kBoxHeight / 2 + 14;
  const double y = left.y - kOver;
  return printed("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fL%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", left.x, left.y,
                 left.x - kOut - 14, left.y, left.x - kOut - 14, y, left.x - kBoxWidth / 2, y, right.x + kBoxWidth / 2,
                 y, right.x + kOut + 14, y, right.x + kOut + 14, right.y, right.x, right.y);
}

// Out at the top, down beside the column, and in again from below.
std::string around_column(Point top, Point bottom) {
  constexpr double kOut = kBoxHeight / 2 + 30;
  const double x = top.x + kBoxWidth / 2 + 12;
  return printed("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fL%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", top.x, top.y,
                 top.x, top.y - kOut - 14, x, top.y - kOut - 14, x, top.y - kBoxHeight / 2, x,
                 bottom.y + kBoxHeight / 2, x, bottom.y + kOut + 14, bottom.x, bottom.y + kOut + 14, bottom.x,
                 bottom.y);
}

// From the first layer to the last, past those between.
std::string around_layers(Point front, Point back) {
  const Point middle{(front.x + back.x) / 2 - kBoxWidth * 0.8, (front.y + back.y) / 2 - kBoxHeight * 1.6};
  return printed("M%.1f %.1fQ%.1f %.1f %.1f %.1f", front.x, front.y, middle.x, middle.y, back.x, back.y);
}

}  // namespace

Layout lay_out(const Fabric& fabric) {
  if (fabric.shape == Fabric::Shape::Torus) return lay_out_torus(fabric);
  if (fabric.shape == Fabric::Shape::Chain) return lay_out_chain(fabric.devices);
  return lay_out_circle(fabric);
}

std::string way_between(const Fabric& fabric, const Layout& layout, int a, int b) {
  const Point from = layout.centers[static_cast<size_t>(std::min(a, b))];
  const Point to = layout.centers[static_cast<size_t>(std::max(a, b))];
  if (fabric.shape != Fabric::Shape::Torus) return straight(from, to);
  const Cell first = cell_of(fabric, std::min(a, b));
  const Cell last = cell_of(fabric, std::max(a, b));
  if (last.column - first.column > 1) return around_row(from, to);
  if (last.row - first.row > 1) return around_column(from, to);
  if (last.layer - first.layer > 1) return around_layers(from, to);
  return straight(from, to);
}

}  // namespace ccom
