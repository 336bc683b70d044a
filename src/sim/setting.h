// SPDX-License-Identifier: Apache-2.0
//
// Room-private: who takes part in a simulation and over which wires; all that does not change while it runs, and where
// each rank stands.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/simulator.h"
#include "sim/timed_plan.h"

namespace ccom {

constexpr uint32_t kNone = UINT32_MAX;

// An ordered way from one rank to another.
struct Pipe {
  uint32_t receiver = kNone;                   // index into the simulated ranks
  uint32_t first_wire = 0, wires = 0;          // into Simulation::paths_
  uint32_t receive = kNone;                    // the receiver's next step on it that is not done
  uint32_t arrived = 0, posted = 0, done = 0;  // messages
};

struct SimRank {
  Rank rank = 0;
  std::shared_ptr<const TimedPlan> plan;
  Executor executor;
  std::vector<uint32_t> pipe_of_step;
  SimTime post = 0;        // what starting a message takes
  double reduce_ps = 0;    // per byte
  SimTime may_post = 0;    // when the last message has been started
  SimTime may_reduce = 0;  // when the reducer is free
  bool dead = false, traced = false;
};

// The simulated ranks (all, or those of the first host) and the pipes between them. Built once.
class Setting {
 public:
  // Both outlive it.
  Setting(const Topology& topology, const SimOptions& options);
  Status add_ranks(const PlanSource& plan_of);

  std::vector<SimRank> ranks;
  std::vector<Pipe> pipes;
  std::vector<uint32_t> paths;  // wires of all pipes
  Wires wires;
  std::unordered_map<Rank, uint32_t> index_of;               // into ranks
  std::unordered_map<uint32_t, std::vector<Step>> steps_of;  // of traced ranks, by index
  size_t distinct_plans() const { return plans_.count(); }

 private:
  void add_rank(const Plan& plan);
  uint32_t pipe(Rank from, Rank to, uint8_t channel);
  void connect(const Plan& plan, uint32_t step);
  Status fold(const std::vector<Plan>& plans, const PlanSource& plan_of);

  const Topology& topology_;
  const SimOptions& options_;
  TimedPlans plans_;
  std::unordered_map<uint64_t, uint32_t> pipe_of_;
};

}  // namespace ccom
