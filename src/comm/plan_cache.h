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
  PlanCache(Rank rank, const Topology& topology, Settings settings, ChannelSource& channels)
      : rank_(rank),
        nranks_(topology.nranks()),
        topology_(topology),
        settings_(std::move(settings)),
        channels_(channels) {
    settings_.most_channels = channels_needed(topology_, settings_.forced);
  }

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

  Result<std::shared_ptr<const Choice>> choice_of_messages(const PlanKey& key);
  Result<std::shared_ptr<const CompiledPlan>> compiled(const PlanKey& key);

  Rank rank_;
  int nranks_;
  const Topology& topology_;
  Settings settings_;
  ChannelSource& channels_;
  std::map<std::tuple<Collective, bool, Rank, size_t>, std::shared_ptr<const Choice>> choices_, choices_of_messages_;
  std::vector<Program> programs_;  // all that compiled_ has plans of; the same algorithm may have several
  std::map<std::tuple<Collective, bool, bool, Rank, Rank, int>, std::shared_ptr<const CompiledPlan>> compiled_;
  std::array<Slot, kSlots> slots_;
};

}  // namespace ccom
