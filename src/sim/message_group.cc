// SPDX-License-Identifier: Apache-2.0
#include "sim/message_group.h"

namespace ccom {
namespace {

uint64_t key_of(int from, int to, uint8_t channel) {
  return static_cast<uint64_t>(from) << 36 | static_cast<uint64_t>(to) << 8 | channel;
}

Status unlike(Rank rank, Rank mate) {
  return error(Code::NotSupported, "the plan of rank %d is unlike that of rank %d on the first host", rank, mate)
      .with_cure("Simulate all hosts.");
}

class GroupBuilder {
 public:
  GroupBuilder(const GroupSource& source, TimedPlans& plans) : source_(source), plans_(plans) {}

  MessageGroup make_all() {
    const auto size = static_cast<int>(source_.ranks.size());
    for (int member = 0; member < size; ++member) index_of_.emplace(member, static_cast<uint32_t>(member));
    for (int member = 0; member < size; ++member) {
      const Plan plan = source_.plan_of(member);
      add(plan, member);
      for (uint32_t s = 0; s < plan.steps.size(); ++s) connect(plan, member, s);
    }
    return std::move(group_);
  }

  Result<MessageGroup> make_folded() {
    for (const Host& host : source_.topology.hosts) {
      if (!host.rack.name.empty())
        return error(Code::NotSupported, "hosts of a rack share its uplinks").with_cure("Simulate all hosts.");
    }
    std::vector<Plan> plans;
    for (int rank = 0; rank < source_.topology.nranks(); ++rank) {
      if (source_.topology.ranks[static_cast<size_t>(rank)].host != 0) continue;
      index_of_.emplace(rank, static_cast<uint32_t>(plans.size()));
      plans.push_back(source_.plan_of(rank));
    }
    for (const Plan& plan : plans) add(plan, plan.rank);
    for (const Plan& plan : plans) {
      for (uint32_t s = 0; s < plan.steps.size(); ++s) {
        if (plan.steps[s].kind != StepKind::Send || index_of_.contains(plan.steps[s].peer)) connect(plan, plan.rank, s);
      }
    }
    for (const Plan& plan : plans) CCOM_TRY(turn_back(plans, plan));
    return std::move(group_);
  }

 private:
  // Of a rank of another host: its first receive from each peer on each channel.
  struct Outside {
    Plan plan;
    std::unordered_map<uint64_t, uint32_t> first_receive;
  };

  void add(const Plan& plan, int member) {
    const Rank rank = source_.ranks[static_cast<size_t>(member)];
    MessageMember& added = group_.members.emplace_back();
    added.rank = rank;
    added.plan = plans_.of(plan, source_.bytes_of(plan, member));
    added.pipe_of_step.assign(plan.steps.size(), kNone);
    if (!source_.is_traced(rank)) return;
    added.steps = plan.steps;
    for (Step& step : added.steps) {
      if (step.is_transfer()) step.peer = source_.ranks[static_cast<size_t>(step.peer)];
    }
  }

  MessageMember& member(int index) { return group_.members[index_of_.at(index)]; }

  uint32_t pipe(int from, int to, uint8_t channel) {
    const auto [at, is_new] = pipe_of_.emplace(key_of(from, to, channel), static_cast<uint32_t>(group_.pipes.size()));
    if (is_new) {
      MessagePipe& added = group_.pipes.emplace_back();
      added.receiver = index_of_.at(to);
      added.first_wire = static_cast<uint32_t>(group_.paths.size());
      source_.wires.path(source_.ranks[static_cast<size_t>(from)], source_.ranks[static_cast<size_t>(to)],
                         group_.paths);
      added.wires = static_cast<uint32_t>(group_.paths.size()) - added.first_wire;
    }
    return at->second;
  }

  void connect(const Plan& plan, int index, uint32_t s) {
    const Step& step = plan.steps[s];
    if (!step.is_transfer()) return;
    const bool receives = step.is_receive();
    const uint32_t p = receives ? pipe(step.peer, index, step.channel) : pipe(index, step.peer, step.channel);
    member(index).pipe_of_step[s] = p;
    if (receives && group_.pipes[p].receive == kNone) group_.pipes[p].receive = s;
  }

  // Messages that leave the host go to the mate of their receiver (the rank of its place on this host), as the message
  // that the mate gets in the same step of its plan.
  Status turn_back(const std::vector<Plan>& plans, const Plan& plan) {
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      if (step.kind != StepKind::Send || index_of_.contains(step.peer)) continue;
      const Rank mate = source_.topology.ranks[static_cast<size_t>(step.peer)].local;  // hosts are numbered alike
      CCOM_TRY_ASSIGN(const Outside* const peer, look_outside(step.peer, mate));
      const auto first = peer->first_receive.find(key_of(plan.rank, 0, step.channel));
      if (first == peer->first_receive.end()) return unlike(step.peer, mate);
      const Step& twin = plans[index_of_.at(mate)].steps[first->second];
      member(plan.rank).pipe_of_step[s] = pipe(twin.peer, mate, twin.channel);
    }
    return Status::ok();
  }

  Result<const Outside*> look_outside(Rank rank, Rank mate) {
    const auto [at, is_new] = outside_.try_emplace(rank);
    Outside& peer = at->second;
    if (!is_new) return &peer;
    peer.plan = source_.plan_of(rank);
    if (plans_.of(peer.plan, source_.bytes_of(peer.plan, rank)) != member(mate).plan) return unlike(rank, mate);
    for (uint32_t r = 0; r < peer.plan.steps.size(); ++r) {
      const Step& receive = peer.plan.steps[r];
      if (receive.is_receive()) peer.first_receive.emplace(key_of(receive.peer, 0, receive.channel), r);
    }
    return &peer;
  }

  const GroupSource& source_;
  TimedPlans& plans_;
  MessageGroup group_;
  std::unordered_map<int, uint32_t> index_of_;  // into the members, by index in the plans
  std::unordered_map<uint64_t, uint32_t> pipe_of_;
  std::unordered_map<Rank, Outside> outside_;
};

}  // namespace

MessageGroup make_group(const GroupSource& source, TimedPlans& plans) { return GroupBuilder(source, plans).make_all(); }

Result<MessageGroup> make_folded_group(const GroupSource& source, TimedPlans& plans) {
  return GroupBuilder(source, plans).make_folded();
}

}  // namespace ccom
