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
#include "plan/partition.h"
#include "plan/plan.h"
#include "transports/transport.h"

namespace ccom {

// A plan with its dependencies; shared by all bindings of it. Immutable.
struct CompiledPlan {
  explicit CompiledPlan(Plan p) : plan(std::move(p)), dependencies(derive_dependencies(plan)) {}
  Plan plan;
  Dependencies dependencies;
};

// A step in bytes. Offsets are into the buffer of that name.
struct BoundStep {
  StepKind kind;
  Buffer source_buffer, target_buffer;
  bool completes = false;
  uint16_t inputs = 0;
  uint16_t transport = 0;  // index of the channel's transport in the engine
  Rank peer = -1;
  Channel* channel = nullptr;
  size_t source = 0, target = 0;
  size_t size_bytes = 0;
  size_t elements = 0;
  size_t stride = 0;  // Reduce: from one input to the next
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

// What a plan is bound to. Elements per unit, and from one unit to the next in the user's buffers.
struct Binding {
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  size_t unit_elements = 0;
  size_t unit_stride = 0;
};

struct BoundPlan {
  std::shared_ptr<const CompiledPlan> compiled;
  Binding binding;
  size_t scratch_bytes = 0;
  std::vector<BoundStep> steps;
};

Result<BoundPlan> bind(std::shared_ptr<const CompiledPlan> compiled, const Binding& binding, ChannelSource& channels);

}  // namespace ccom
