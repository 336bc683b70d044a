// SPDX-License-Identifier: Apache-2.0
//
// From a request to a plan that is ready to run, remembering every stage: choice, compiled plan, bound plan.
//
// The choice depends on the size only through its power of two, so that the cache of choices stays small and every
// rank, whatever it has cached, chooses alike.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "comm/request.h"
#include "engine/bound_plan.h"
#include "planner/planner.h"

namespace ccom {

// What a request's plan depends on, besides the topology.
struct PlanKey {
  Collective collective = Collective::AllReduce;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  bool in_place = false;
  bool sends = false;
  Rank root = -1, peer = -1;
  size_t unit_elements = 0;  // bound to: a whole unit or a tile of it
  size_t unit_stride = 0;    // elements of a unit
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

// Belongs to one thread at a time. References outlive it.
class PlanCache {
 public:
  static constexpr size_t kScratchBytes = size_t{2} << 20;  // stays in cache
  struct Machine {
    const Topology& topology;
    bool shares_memory;                    // Question::shares_memory
    bool meets_inside;                     // Question::meets_inside
    size_t scratch_bytes = kScratchBytes;  // that one run may take
  };
  PlanCache(Rank rank, int nranks, const Machine& machine, std::string forced, ChannelSource& channels)
      : rank_(rank),
        nranks_(nranks),
        machine_(machine),
        forced_(std::move(forced)),
        channels_(channels),
        most_channels_(channels_needed(machine.topology, forced_)) {}

  Result<std::shared_ptr<const BoundPlan>> get(const PlanKey& key);
  Result<std::shared_ptr<const Choice>> choice(const PlanKey& key);
  // The most elements of a unit that one run may cover; a property of the choice, equal on all ranks.
  size_t tile(const PlanKey& key);
  Question question(const PlanKey& key) const;

 private:
  struct Slot {
    PlanKey key;
    std::shared_ptr<const BoundPlan> plan;
  };
  static constexpr size_t kSlots = 128;  // direct-mapped
  static constexpr size_t kMostCompiled = 512;

  Result<std::shared_ptr<const CompiledPlan>> compiled(const PlanKey& key);

  Rank rank_;
  int nranks_;
  const Machine machine_;
  std::string forced_;
  ChannelSource& channels_;
  int most_channels_;  // between two ranks
  std::map<std::tuple<Collective, bool, Rank, size_t>, std::shared_ptr<const Choice>> choices_;
  std::vector<Recipe> recipes_;  // all that compiled_ has plans of; the same algorithm may have several
  std::map<std::tuple<Collective, bool, bool, Rank, Rank, int>, std::shared_ptr<const CompiledPlan>> compiled_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace ccom
