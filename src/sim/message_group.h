// SPDX-License-Identifier: Apache-2.0
//
// Room-private: who exchanges messages in a stage, and over which wires. Nothing here changes while they run.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "sim/timed_plan.h"
#include "topology/wires.h"

namespace ccom {

constexpr uint32_t kNone = UINT32_MAX;

// An ordered way from one member to another.
struct MessagePipe {
  uint32_t receiver = kNone;           // index into the members
  uint32_t first_wire = 0, wires = 0;  // into MessageGroup::paths
  uint32_t receive = kNone;            // the receiver's first step on it
};

struct MessageMember {
  Rank rank = 0;
  std::shared_ptr<const TimedPlan> plan;
  std::vector<uint32_t> pipe_of_step;
  std::vector<Step> steps;  // of traced ranks; peers are ranks
};

struct MessageGroup {
  std::vector<MessageMember> members;  // folded: those of the first host
  std::vector<MessagePipe> pipes;
  std::vector<uint32_t> paths;  // wires of all pipes
};

// What a group is made from. All outlives the call of make_group().
struct GroupSource {
  const Topology& topology;
  const Wires& wires;
  std::span<const Rank> ranks;              // by member
  std::function<Plan(int member)> plan_of;  // peers are members
  std::function<StepBytes(const Plan&, int member)> bytes_of;
  std::function<bool(Rank)> is_traced;
};

MessageGroup make_group(const GroupSource& source, TimedPlans& plans);
// One host stands for all: members are ranks, of which only those of the first host are simulated. NotSupported if
// another host's messages turn out to be unlike the first one's.
Result<MessageGroup> make_folded_group(const GroupSource& source, TimedPlans& plans);

}  // namespace ccom
