// SPDX-License-Identifier: Apache-2.0
#include "sim/setting.h"

#include <algorithm>

namespace ccom {
namespace {

constexpr size_t kLeastElements = 64;  // of a block, if all are to count as equally long

uint64_t key_of(Rank from, Rank to, uint8_t channel) {
  return static_cast<uint64_t>(from) << 36 | static_cast<uint64_t>(to) << 8 | channel;
}

Status unlike(Rank rank, Rank mate) {
  return error(Code::NotSupported, "the plan of rank %d is unlike that of rank %d on the first host", rank, mate)
      .with_cure("Simulate all hosts.");
}

}  // namespace

Setting::Setting(const Topology& topology, const SimOptions& options)
    : wires(topology),
      topology_(topology),
      options_(options),
      plans_(options.unit_bytes, options.element_bytes, options.fold_hosts) {}

Status Setting::add_ranks(const PlanSource& plan_of) {
  for (Rank rank = 0; rank < topology_.nranks(); ++rank) {
    if (options_.fold_hosts && topology_.ranks[static_cast<size_t>(rank)].host != 0) continue;
    index_of.emplace(rank, static_cast<uint32_t>(index_of.size()));
  }
  ranks.reserve(index_of.size());
  std::vector<Plan> plans;  // kept only while they are needed to fold
  for (Rank rank = 0; rank < topology_.nranks(); ++rank) {
    if (!index_of.contains(rank)) continue;
    Plan plan = plan_of(rank);
    if (options_.fold_hosts && options_.unit_bytes < kLeastElements * options_.element_bytes * plan.blocks_per_unit) {
      return error(Code::NotSupported, "blocks of %s have too few elements", plan.algorithm.c_str());
    }
    add_rank(plan);
    if (options_.fold_hosts) {
      plans.push_back(std::move(plan));
    } else {
      for (uint32_t s = 0; s < plan.steps.size(); ++s) connect(plan, s);
    }
  }
  return options_.fold_hosts ? fold(plans, plan_of) : Status::ok();
}

void Setting::add_rank(const Plan& plan) {
  const Host& host = topology_.hosts[static_cast<size_t>(topology_.ranks[static_cast<size_t>(plan.rank)].host)];
  const Costs& costs = host.imposed ? host.imposed->costs : topology_.costs;
  std::shared_ptr<const TimedPlan> timed = plans_.of(plan);
  Executor executor(timed->dependencies);
  ranks.push_back({.rank = plan.rank,
                   .plan = std::move(timed),
                   .executor = std::move(executor),
                   .pipe_of_step = std::vector<uint32_t>(plan.steps.size(), kNone),
                   .post = picoseconds(costs.post_ns),
                   .reduce_ps = costs.reduce_bytes_per_second > 0 ? 1e12 / costs.reduce_bytes_per_second : 0,
                   .traced = std::ranges::find(options_.traced_ranks, plan.rank) != options_.traced_ranks.end()});
  if (ranks.back().traced) steps_of.emplace(index_of.at(plan.rank), plan.steps);
}

// The pipe `from` -> `to`; its path is that of `path_from` -> `path_to`.
uint32_t Setting::pipe(Rank from, Rank to, uint8_t channel) {
  const auto [at, is_new] = pipe_of_.emplace(key_of(from, to, channel), static_cast<uint32_t>(pipes.size()));
  if (is_new) {
    Pipe& added = pipes.emplace_back();
    added.receiver = index_of.at(to);
    added.first_wire = static_cast<uint32_t>(paths.size());
    wires.path(from, to, paths);
    added.wires = static_cast<uint32_t>(paths.size()) - added.first_wire;
  }
  return at->second;
}

void Setting::connect(const Plan& plan, uint32_t s) {
  const Step& step = plan.steps[s];
  if (!step.is_transfer()) return;
  SimRank& rank = ranks[index_of.at(plan.rank)];
  const bool receives = step.is_receive();
  const uint32_t p = receives ? pipe(step.peer, plan.rank, step.channel) : pipe(plan.rank, step.peer, step.channel);
  rank.pipe_of_step[s] = p;
  if (receives && pipes[p].receive == kNone) pipes[p].receive = s;
}

// Messages that leave the host go to the mate of their receiver (the rank of its place on this host), as the message
// that the mate gets in the same step of its plan.
Status Setting::fold(const std::vector<Plan>& plans, const PlanSource& plan_of) {
  for (const Plan& plan : plans) {
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      if (plan.steps[s].kind != StepKind::Send || index_of.contains(plan.steps[s].peer)) connect(plan, s);
    }
  }
  struct Outside {
    Plan plan;
    std::unordered_map<uint64_t, uint32_t> first_receive;  // by peer and channel
  };
  std::unordered_map<Rank, Outside> outside;
  for (const Plan& plan : plans) {
    SimRank& sender = ranks[index_of.at(plan.rank)];
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      if (step.kind != StepKind::Send || index_of.contains(step.peer)) continue;
      const Rank mate = topology_.ranks[static_cast<size_t>(step.peer)].local;  // hosts are numbered alike
      if (!outside.contains(step.peer)) {
        Outside& added = outside[step.peer];
        added.plan = plan_of(step.peer);
        if (plans_.of(added.plan) != ranks[index_of.at(mate)].plan) return unlike(step.peer, mate);
        for (uint32_t r = 0; r < added.plan.steps.size(); ++r) {
          const Step& receive = added.plan.steps[r];
          if (receive.is_receive()) added.first_receive.emplace(key_of(receive.peer, 0, receive.channel), r);
        }
      }
      const Outside& peer = outside.at(step.peer);
      const auto first = peer.first_receive.find(key_of(plan.rank, 0, step.channel));
      if (first == peer.first_receive.end()) return unlike(step.peer, mate);
      const Step& twin = plans[index_of.at(mate)].steps[first->second];
      sender.pipe_of_step[s] = pipe(twin.peer, mate, twin.channel);
    }
  }
  return Status::ok();
}

}  // namespace ccom
