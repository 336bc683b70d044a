// SPDX-License-Identifier: Apache-2.0
//
// One rank's part in a program, before anything is known of counts and types: its place in each stage and its plans.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "engine/bound_plan.h"
#include "node/node_call.h"
#include "plan/program.h"

namespace ccom {

struct CompiledStage {
  enum class Kind : uint8_t {
    None,  // this rank takes no part
    Copy,  // alone in its group
    Host,
    Messages,
  };
  Kind kind = Kind::None;
  size_t group = 0;
  int member = 0;
  bool in_place = false;                       // what this rank both gives and gets lies at one address
  std::shared_ptr<const CompiledPlan> plan{};  // Messages
  std::unique_ptr<PreparedTask> task{};        // Host
};

// Belongs to one thread at a time: tasks make their plans when they are first needed.
struct CompiledProgram {
  std::shared_ptr<const Program> program;
  Rank rank = 0;
  bool in_place = false;        // the call
  uint64_t algorithm_hash = 0;  // hash_of_text()
  std::vector<CompiledStage> stages{};

  // The blocks that this rank gives and gets in a stage that it takes part in.
  const StageMember* member(size_t stage) const;
};

// The ways in which a Host stage may run, the one that the program names first. Empty: that one alone.
using WaysOfStage = std::function<std::vector<NodeChoice>(const Stage&)>;

// InternalError for what the runner cannot run: members of a Host stage whose blocks lie in several buffers, a group of
// one that gets what nobody gives.
Result<std::shared_ptr<const CompiledProgram>> compile(std::shared_ptr<const Program> program, Rank rank, bool in_place,
                                                       const WaysOfStage& ways = {});

}  // namespace ccom
