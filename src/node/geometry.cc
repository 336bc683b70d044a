// SPDX-License-Identifier: Apache-2.0
#include "node/geometry.h"

#include <algorithm>

#include "base/assert.h"
#include "node/lines.h"

namespace ccom {
namespace {

constexpr size_t kRoundFromLines = 16;  // shorter parts: an even spread matters more than alignment

// The blocks that an Input (and its Stage) or an Output holds.
const std::vector<uint32_t>& blocks_of(const NodeCall& call, const Operand& operand) {
  const BlockLists& lists = call.task->task().blocks;
  return (operand.area == Area::Output ? lists.gets : lists.gives)[static_cast<size_t>(operand.owner)];
}

size_t unit_elements(const NodeCall& call, const Operand& operand, uint32_t unit) {
  if (call.views == nullptr || call.views->block_elements.empty()) return call.count;
  return call.views->block_elements[blocks_of(call, operand)[unit]];
}

int64_t unit_offset(const NodeCall& call, const Operand& operand, uint32_t unit) {
  if (call.views == nullptr) return static_cast<int64_t>(unit * call.unit_bytes());
  return (operand.area == Area::Output ? call.views->got : call.views->given)[static_cast<size_t>(operand.owner)][unit];
}

}  // namespace

NodeGeometry::NodeGeometry(const NodeCall& call, const NodePlan& plan, const NodeLayout& layout)
    : call_(call),
      element_bytes_(call.element_bytes()),
      parts_(plan.parts),
      tile_elements_(call.count),
      part_elements_(part_elements(call.count, parts_)) {
  if (!plan.staged || call.count == 0) return;
  slot_bytes_ = layout.bank_bytes / call.task->most_given() / element_bytes_ * element_bytes_;
  const size_t most = longest_tile(layout);
  CCOM_ASSERT(most > 0);
  if (call.count <= most) return;
  // Tiles of equal length.
  tiles_ = (call.count + most - 1) / most;
  tile_elements_ = std::min(most, part_elements(call.count, tiles_));
  tiles_ = (call.count + tile_elements_ - 1) / tile_elements_;
  part_elements_ = part_elements(tile_elements_, parts_);
}

// The same for all reaches of a choice: the first tile is staged before anybody knows which it is.
size_t NodeGeometry::longest_tile(const NodeLayout& layout) const {
  const size_t wanted = call_.task->choice().tile_bytes / call_.task->most_given() / element_bytes_;
  const size_t part = (layout.result_bytes() - kLineBytes) / element_bytes_;  // may be rounded up to a line
  return std::min({slot_bytes_ / element_bytes_, std::max<size_t>(wanted, 1), part * call_.task->least_parts()});
}

size_t NodeGeometry::part_elements(size_t elements, size_t parts) const {
  const size_t part = (elements + parts - 1) / parts;
  const size_t line = std::max<size_t>(kLineBytes / element_bytes_, 1);
  return part >= kRoundFromLines * line ? (part + line - 1) / line * line : part;
}

// First element of a part of a unit in a tile.
size_t NodeGeometry::part_begin(const Operand& operand, size_t tile, uint32_t unit, uint32_t part) const {
  if (part == 0) return 0;
  const size_t whole = unit_elements(call_, operand, unit);
  const size_t length = std::min(tile_elements_, whole - std::min(whole, tile * tile_elements_));
  if (part == parts_) return length;
  return std::min(length, part * (length == tile_elements_ ? part_elements_ : part_elements(length, parts_)));
}

size_t NodeGeometry::elements(const Operand& operand, size_t tile, uint32_t piece, uint32_t count) const {
  const auto [unit, part] = place_of(piece);
  return part_begin(operand, tile, unit, part + count) - part_begin(operand, tile, unit, part);
}

int64_t NodeGeometry::in_buffer(const Operand& operand, size_t tile, uint32_t piece) const {
  const auto [unit, part] = place_of(piece);
  const size_t element = tile * tile_elements_ + part_begin(operand, tile, unit, part);
  return unit_offset(call_, operand, unit) + static_cast<int64_t>(element * element_bytes_);
}

size_t NodeGeometry::in_stage(const Operand& operand, size_t tile, uint32_t piece) const {
  const auto [unit, part] = place_of(piece);
  return unit * slot_bytes_ + part_begin(operand, tile, unit, part) * element_bytes_;
}

NodeGeometry::Extent NodeGeometry::extent(const NodeCall& call, const Operand& operand) {
  Extent extent;
  const size_t units = blocks_of(call, operand).size();
  if (call.views == nullptr) return {0, static_cast<int64_t>(units * call.unit_bytes())};
  for (uint32_t unit = 0; unit < units; ++unit) {
    const auto bytes = static_cast<int64_t>(unit_elements(call, operand, unit) * call.element_bytes());
    if (bytes == 0) continue;
    const int64_t begin = unit_offset(call, operand, unit);
    const bool is_first = extent.begin == extent.end;
    extent.begin = is_first ? begin : std::min(extent.begin, begin);
    extent.end = is_first ? begin + bytes : std::max(extent.end, begin + bytes);
  }
  return extent;
}

}  // namespace ccom
