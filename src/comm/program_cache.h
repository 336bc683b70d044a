// SPDX-License-Identifier: Apache-2.0
//
// From a call to a program that is ready to run, remembering every step: choice, compiled program, bound program.
//
// The choice depends on the size only through its power of two, so that the cache of choices stays small and every
// rank, whatever it has cached, chooses alike.
#pragma once

#include <memory>
#include <unordered_map>
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

// In the cache.
struct KeptProgram {
  std::shared_ptr<const BoundProgram> program;
  size_t bytes = 0;   // about what it takes
  uint64_t used = 0;  // the number of the get() that gave it last
};

// Where a caller found the program of one key.
struct ProgramUse {
  KeptProgram* kept = nullptr;
  uint64_t generation = 0;
};

// Belongs to one thread at a time. References outlive it.
class ProgramCache {
 public:
  // lines: of this host. proves: every program, when it is first compiled.
  ProgramCache(Rank rank, const Topology& topology, std::shared_ptr<ProgramChoices> choices, const LineCosts& lines,
               ProgramRunner& runner, bool proves);

  // Valid until the next call. key(): of `use`, asked only where the cache has to be searched.
  Result<const BoundProgram*> get(const ProgramKey& key) {
    ProgramUse use;
    return get(use, [&key] { return key; });
  }
  template <typename MakeKey>
  Result<const BoundProgram*> get(ProgramUse& use, MakeKey key) {
    if (use.kept == nullptr || use.generation != generation_) [[unlikely]] {
      CCOM_TRY_ASSIGN(use.kept, keep(key()));
      use.generation = generation_;
    }
    use.kept->used = ++uses_;
    return use.kept->program.get();
  }
  Result<std::shared_ptr<const Choice>> choice(const ProgramKey& key);
  Question question(const ProgramKey& key) const;

 private:
  using Chosen = ProgramChoices::Chosen;
  struct Hash {
    size_t operator()(const ProgramKey& key) const;
  };
  static constexpr size_t kKeptBytes = size_t{32} << 20;  // of what is bound
  static constexpr size_t kMostCompiled = 512;

  Result<KeptProgram*> keep(const ProgramKey& key);
  void forget_least_used();
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
  std::unordered_map<ProgramKey, KeptProgram, Hash> bound_;
  size_t bound_bytes_ = 0;
  uint64_t uses_ = 0, generation_ = 0;  // generation: changes when programs are forgotten
};

}  // namespace ccom
