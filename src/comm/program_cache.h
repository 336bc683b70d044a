// SPDX-License-Identifier: Apache-2.0
//
// From a call to a program that is ready to run, remembering every step: choice, compiled program, bound program.
//
// The choice depends on the size only through its power of two, so that the cache of choices stays small and every
// rank, whatever it has cached, chooses alike.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/status.h"
#include "comm/program_choices.h"
#include "planner/planner.h"
#include "runner/program_runner.h"

namespace ccom {

// What a call's program depends on, besides the topology and the settings.
struct ProgramKey {
  Collective collective = Collective::AllReduce;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool in_place = false;
  Rank root = -1;
  size_t count = 0;
  UnitLayout units{};  // of a v-form, instead
  friend bool operator==(const ProgramKey&, const ProgramKey&) = default;
};

// Belongs to one thread at a time. References outlive it.
class ProgramCache {
 public:
  // lines: of this host. proves: every program, when it is first compiled.
  ProgramCache(Rank rank, const Topology& topology, std::shared_ptr<ProgramChoices> choices, const LineCosts& lines,
               ProgramRunner& runner, bool proves);

  // Valid until the next call.
  Result<const BoundProgram*> get(const ProgramKey& key);
  Result<std::shared_ptr<const Choice>> choice(const ProgramKey& key);
  Question question(const ProgramKey& key) const;

 private:
  using Chosen = ProgramChoices::Chosen;
  struct Slot {
    ProgramKey key;
    std::shared_ptr<const BoundProgram> program;
  };
  static constexpr size_t kSlots = 128;  // direct-mapped
  static constexpr size_t kMostCompiled = 512;

  Status prove_once(Chosen& chosen, const Question& asked) const;
  Result<std::shared_ptr<const CompiledProgram>> compiled(const ProgramKey& key);

  const Rank rank_;
  const Topology& topology_;
  const std::shared_ptr<ProgramChoices> choices_;
  const LineCosts lines_;
  ProgramRunner& runner_;
  const bool proves_;
  // Sizes often have equal programs.
  std::vector<std::shared_ptr<const CompiledProgram>> compiled_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace ccom
