// SPDX-License-Identifier: Apache-2.0
//
// From pieces to bytes: a node plan applied to a call. The same on all ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ccom {

struct NodeGeometry {
  size_t element_bytes = 1;
  size_t unit_elements = 0;  // of a call
  size_t unit_stride = 0;    // elements from one unit to the next in a buffer
  size_t tile_elements = 0;  // of every unit in a tile; the last one may have fewer
  size_t tiles = 1;
  uint32_t parts = 1;
  size_t slot_bytes = 0;  // of a unit in the stage

  // Equal parts, in whole cache lines where they are long.
  static size_t part_elements(size_t elements, uint32_t parts, size_t element_bytes) {
    const size_t part = (elements + parts - 1) / parts;
    const size_t line = std::max<size_t>(kLineBytes / element_bytes, 1);
    return part >= kRoundFromLines * line ? (part + line - 1) / line * line : part;
  }
  size_t length(size_t tile) const {
    return std::min(tile_elements, unit_elements - std::min(unit_elements, tile * tile_elements));
  }
  // First element of a part in its tile.
  size_t part_begin(size_t tile, uint32_t part) const {
    return std::min(length(tile), part * part_elements(length(tile), parts, element_bytes));
  }
  size_t in_buffer(size_t tile, uint32_t piece) const {
    return (piece / parts * unit_stride + tile * tile_elements + part_begin(tile, piece % parts)) * element_bytes;
  }
  size_t in_stage(size_t tile, uint32_t piece) const {
    return piece / parts * slot_bytes + part_begin(tile, piece % parts) * element_bytes;
  }
  // In pieces [piece, piece + count) of one unit.
  size_t elements(size_t tile, uint32_t piece, uint32_t count) const {
    return part_begin(tile, piece % parts + count) - part_begin(tile, piece % parts);
  }

 private:
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kRoundFromLines = 16;
};

}  // namespace ccom
