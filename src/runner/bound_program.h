// SPDX-License-Identifier: Apache-2.0
//
// A program bound to a count, a type and an operator: everything but addresses, ready to run again and again.
//
// All tiles but the last are equally long, so a stage is bound twice: to a whole tile, and to the last one. Offsets are
// those of tile 0; the user's buffers are shifted by the tiles before.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runner/compiled_program.h"

namespace ccom {

// What a program is bound to, besides the channels.
struct ProgramBinding {
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  size_t count = 0;  // elements of a unit, as in the C API
};

// A stage of this rank in a tile of one length.
struct BoundStage {
  struct Copy {
    UnitAt from, to;
    size_t elements = 0;
  };
  std::vector<Copy> copies{};                             // Kind::Copy
  std::vector<std::shared_ptr<const BoundPlan>> plans{};  // Kind::Messages: by lane
  // Kind::Host: elements of the longest block, and where the group's units lie, from the begin of these buffers. No
  // views: units follow one another from there, all equally long.
  size_t elements = 0;
  Memory input = Memory::Input, output = Memory::Output;
  std::unique_ptr<const NodeViews> views{};
};

struct BoundProgram {
  std::shared_ptr<const CompiledProgram> compiled;
  ProgramBinding binding;
  size_t tile_bytes = 0;     // of a unit, in the user's buffers
  size_t bank_bytes = 0;     // of a tile's scratch
  size_t scratch_bytes = 0;  // that the engine takes for plans under way at a time
  std::vector<Part> order{};
  std::vector<std::array<BoundStage, 2>> stages{};  // [1]: in the last tile

  const Program& program() const { return *compiled->program; }
  const BoundStage& stage(const Part& part) const { return stages[part.stage][part.tile == last_tile ? 1 : 0]; }
  uint32_t last_tile = 0;
};

Result<std::shared_ptr<const BoundProgram>> bind(std::shared_ptr<const CompiledProgram> compiled,
                                                 const ProgramBinding& binding, ChannelSource& channels);

}  // namespace ccom
