// SPDX-License-Identifier: Apache-2.0
//
// Room-private: what the parts of a program are made of and how long they take when nobody is in the way. Answers are
// kept: tiles of one length share them.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "algorithms/stage_cost.h"
#include "plan/program.h"
#include "plan/program_verify.h"
#include "sim/message_group.h"
#include "sim/simulator.h"

namespace ccom {

class ProgramTiming {
 public:
  // All but the plan source outlive it.
  ProgramTiming(const Topology& topology, const Program& program, StagePlanSource source, const SimOptions& options);

  const Wires& wires() const { return wires_; }
  size_t tiles() const { return geometry_.tiles(); }
  // Simulated ranks are 0 ... ranks() - 1: all, or those of the first host.
  uint32_t ranks() const { return ranks_; }

  StagePlace place(uint32_t stage, Rank rank) const { return places_[stage][static_cast<size_t>(rank)]; }
  // A group of one copies.
  bool is_alone(uint32_t stage, int group) const {
    return program_.stages[stage].where != Stage::Where::All && group_size(stage, group) == 1;
  }
  size_t group_size(uint32_t stage, int group) const { return program_.stages[stage].groups[size_at(group)].size(); }
  Rank member(uint32_t stage, int group, size_t index) const {
    return program_.stages[stage].groups[size_at(group)][index].rank;
  }
  // Of a stage of messages.
  Result<const MessageGroup*> messages(uint32_t stage, int group, size_t tile);
  // From when the last member of a group of a Host stage has come to when they leave. A single member copies.
  double node_ns(uint32_t stage, int group, size_t tile);
  HostStageCost shared_memory_cost(const Stage& stage, int group, size_t tile) const;
  size_t distinct_plans() const { return plans_.count(); }

 private:
  // Tiles of one length are alike.
  using Key = std::tuple<uint32_t, int, size_t>;
  static size_t size_at(int index) { return static_cast<size_t>(index); }
  Key key(uint32_t stage, int group, size_t tile) const { return {stage, group, geometry_.tile_elements(tile)}; }

  Result<MessageGroup> make_messages(uint32_t stage, int group, size_t tile);
  // `plan` outlives what is returned.
  StepBytes step_bytes(const Stage& stage, int group, int member, size_t tile, const Plan& plan) const;

  const Topology& topology_;
  const Program& program_;
  StagePlanSource source_;
  const SimOptions& options_;
  Wires wires_;
  ProgramGeometry geometry_;
  uint32_t ranks_ = 0;
  std::vector<std::vector<StagePlace>> places_;  // by stage and rank
  TimedPlans plans_;
  std::map<Key, std::unique_ptr<const MessageGroup>> messages_;
  std::map<Key, double> node_ns_;
};

}  // namespace ccom
