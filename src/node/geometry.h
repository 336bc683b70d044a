// SPDX-License-Identifier: Apache-2.0
//
// From pieces to bytes: a node plan applied to a call. Tiles are the same on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/layout.h"
#include "node/node_call.h"

namespace ccom {

// The call outlives it.
class NodeGeometry {
 public:
  NodeGeometry(const NodeCall& call, const NodePlan& plan, const NodeLayout& layout);

  size_t tiles() const { return tiles_; }
  size_t tile_elements() const { return tile_elements_; }
  uint32_t parts() const { return parts_; }

  // Of pieces [piece, piece + count) of one unit of an owner's Input or Output. Stage holds what Input does.
  size_t elements(const Operand& operand, size_t tile, uint32_t piece, uint32_t count) const;
  // Bytes from the begin of the owner's buffer, or of a bank of its stage, to a piece.
  int64_t in_buffer(const Operand& operand, size_t tile, uint32_t piece) const;
  size_t in_stage(const Operand& operand, size_t tile, uint32_t piece) const;

  // All units of a rank's Input or Output, in bytes from the begin of that buffer. Empty: no bytes.
  struct Extent {
    int64_t begin = 0, end = 0;
    size_t size_bytes() const { return static_cast<size_t>(end - begin); }
  };
  static Extent extent(const NodeCall& call, const Operand& operand);

 private:
  size_t longest_tile(const NodeLayout& layout) const;
  // Equal parts, in whole cache lines where they are long.
  size_t part_elements(size_t elements, size_t parts) const;
  size_t part_begin(const Operand& operand, size_t tile, uint32_t unit, uint32_t part) const;
  struct Place {
    uint32_t unit = 0, part = 0;
  };
  Place place_of(uint32_t piece) const { return {piece / parts_, piece % parts_}; }

  const NodeCall& call_;
  const size_t element_bytes_;
  const uint32_t parts_;
  size_t tiles_ = 1;
  size_t tile_elements_;   // of every unit; the last one may have fewer
  size_t part_elements_;   // of a tile with tile_elements_
  size_t slot_bytes_ = 0;  // of a unit in the stage
};

}  // namespace ccom
