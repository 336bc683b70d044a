// SPDX-License-Identifier: Apache-2.0
//
// A plan bound to a count, a type, an operator and channels: everything but the user's pointers, ready to run again and
// again.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/kernels.h"
#include "plan/dependencies.h"
#include "plan/plan.h"
#include "transports/transport.h"

namespace ccom {

// A plan with its dependencies; shared by all bindings of it. Immutable.
struct CompiledPlan {
  explicit CompiledPlan(Plan p) : plan(std::move(p)), dependencies(derive_dependencies(plan)) {}
  Plan plan;
  Dependencies dependencies;
};

// What a step's offsets are into: the buffers of an operation, or the engine's own scratch.
enum class Memory : uint8_t { Input, Output, Bank, Scratch };

// A part of a permutation: bytes that follow one another at both ends.
struct BoundMove {
  Memory source_memory = Memory::Input, target_memory = Memory::Output;
  size_t source = 0, target = 0, size_bytes = 0;
};

// A step in bytes.
struct BoundStep {
  StepKind kind;
  Memory source_memory = Memory::Input, target_memory = Memory::Output;
  bool completes = false;
  bool peer_first = false;  // ReceiveReduce: what the peer sends is the left operand
  uint16_t inputs = 0;      // Reduce
  uint16_t transport = 0;   // index of the channel's transport in the engine
  Rank peer = -1;
  Channel* channel = nullptr;
  size_t source = 0, target = 0;
  size_t size_bytes = 0;
  size_t elements = 0;
  size_t stride = 0;                 // Reduce: from one input to the next
  uint32_t unit = 0;                 // of its first block
  size_t within = 0;                 // elements of this unit before it
  size_t first_move = 0, moves = 0;  // Permute: into BoundPlan::moves
};

// Where a channel to a peer leads.
struct ChannelRef {
  Channel* channel = nullptr;
  uint16_t transport = 0;
  Rank rank = -1;  // at its other end
};

// Opens channels. The communicator implements it.
class ChannelSource {
 public:
  virtual ~ChannelSource() = default;
  virtual Result<ChannelRef> open(Rank peer, int index) = 0;
};

// Where a unit begins, in elements.
struct UnitAt {
  Memory memory = Memory::Input;
  size_t offset = 0;
  friend bool operator==(const UnitAt&, const UnitAt&) = default;
};

// What a plan is bound to: a type, an operator, and where the units of its input and output lie, all equally long
// unless their lengths are given.
struct Binding {
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  size_t unit_elements = 0;  // of the longest
  std::vector<UnitAt> input{}, output{};
  // Of units that differ: a step's length, by Step::block, of a Send and of all others. Units are single blocks then,
  // and steps move one of them, unless the plan is made for such units (Plan::has_unequal_units).
  std::vector<size_t> input_elements{}, output_elements{};
  // Where the units by which steps that combine count their blocks begin in the whole vector: what random bits of
  // rounding belong to. Empty: such plans are never rounded at random.
  std::vector<uint64_t> firsts{};
};
// Units in a row, from one to the next `stride` elements.
std::vector<UnitAt> units_in_row(Memory memory, size_t units, size_t stride);

struct BoundPlan {
  std::shared_ptr<const CompiledPlan> compiled;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  size_t scratch_bytes = 0;
  size_t unit_elements = 0;
  std::vector<uint64_t> firsts;  // as in the binding
  std::vector<BoundStep> steps;
  std::vector<BoundMove> moves;
};

// InternalError for a step whose run of blocks covers units that do not follow one another, or differ in length where
// the plan is not made for that, and for a plan that is without their lengths.
Result<BoundPlan> bind(std::shared_ptr<const CompiledPlan> compiled, const Binding& binding, ChannelSource& channels);

}  // namespace ccom
