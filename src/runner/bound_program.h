// SPDX-License-Identifier: Apache-2.0
//
// A program bound to a count, a type and an operator: everything but addresses, ready to run again and again.
//
// A stage is bound once for all tiles in a row that are alike: all but the last, and the last one; in a v-form, whose
// shorter units end before the last tile, more often. Offsets are those of tile 0; the user's buffers are shifted by
// the tiles before.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "node/bound_call.h"
#include "runner/compiled_program.h"

namespace ccom {

// What a program is bound to, besides the channels.
struct ProgramBinding {
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  size_t count = 0;    // elements of a unit, as in the C API
  UnitLayout units{};  // of a v-form, instead
};

// A stage of this rank in a tile of one length.
struct BoundStage {
  struct Copy {
    UnitAt from, to;      // in bytes
    size_t elements = 0;  // of the call
    size_t place = 0;     // where it converts, of the block in the call's whole vector: its first element
  };
  // Kind::Messages, sums of scaled blocks: the elements of the call that this rank encodes some sums of.
  struct Encoded {
    size_t place = 0, elements = 0;
  };
  DataType type = DataType::Float32;                      // of what the rank gives and gets
  std::vector<Copy> copies{};                             // Kind::Copy
  std::vector<std::shared_ptr<const BoundPlan>> plans{};  // Kind::Messages: by lane
  Encoded encoded{};
  // Kind::Host: the call but for its addresses and what it rounds by, and where its buffers are.
  NodeCall host{};
  Memory input = Memory::Input, output = Memory::Output;
  std::unique_ptr<const NodeViews> views{};  // host.views and host.bound, or null
  std::unique_ptr<BoundCall> kept{};
};

struct BoundProgram {
  std::shared_ptr<const CompiledProgram> compiled;
  ProgramBinding binding;
  size_t tile_bytes = 0;     // of the longest unit, in the user's buffers
  size_t bank_bytes = 0;     // of a tile's scratch
  size_t scratch_bytes = 0;  // that the engine takes for plans under way at a time
  std::vector<Part> order{};
  std::vector<std::vector<BoundStage>> kinds{};  // of tiles: their stages
  std::vector<uint32_t> first_tiles{};           // of each kind

  const Program& program() const { return *compiled->program; }
  const BoundStage& stage(const Part& part) const {
    const auto next = std::ranges::upper_bound(first_tiles, part.tile);
    return kinds[static_cast<size_t>(next - first_tiles.begin()) - 1][part.stage];
  }
};

Result<std::shared_ptr<const BoundProgram>> bind(std::shared_ptr<const CompiledProgram> compiled,
                                                 const ProgramBinding& binding, ChannelSource& channels);

}  // namespace ccom
