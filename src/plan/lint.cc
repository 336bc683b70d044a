// SPDX-License-Identifier: Apache-2.0
#include "plan/lint.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/checks.h"
#include "plan/executor.h"
#include "plan/print.h"

namespace ccom {
namespace {

struct Message {
  uint32_t round;
  Rank from, to;
  uint32_t blocks;
};

struct LockStepRank {
  explicit LockStepRank(const Plan& p)
      : plan(&p), dependencies(derive_dependencies(p)), executor(dependencies), round(p.steps.size()) {}
  const Plan* plan;
  Dependencies dependencies;
  Executor executor;
  std::vector<uint32_t> round;  // of each step; until it is done, the latest of those that it waits for
  std::vector<uint32_t> ready{};
};

// Runs the executors of all ranks; the order in which they get on does not change any round.
class LockStep {
 public:
  explicit LockStep(std::span<const Plan> plans) {
    ranks_.reserve(plans.size());
    for (const Plan& plan : plans) ranks_.emplace_back(plan);
  }

  Result<std::vector<Message>> run() {
    for (LockStepRank& rank : ranks_) {
      rank.executor.start(rank.ready);
      open_.push_back(rank.plan->rank);
    }
    while (!open_.empty()) {
      LockStepRank& rank = ranks_[static_cast<size_t>(open_.back())];
      open_.pop_back();
      while (!rank.ready.empty()) {
        for (const uint32_t s : std::exchange(rank.ready, {})) CCOM_TRY(begin(rank, s));
      }
    }
    for (const LockStepRank& rank : ranks_) {
      if (!rank.executor.finished()) return defect(*rank.plan, rank.plan->steps.size(), "it never finishes");
    }
    return std::move(messages_);
  }

 private:
  struct Pipe {
    std::vector<uint32_t> waiting{};  // steps of one side
    size_t next = 0;
    bool holds_sends = false;
    uint32_t round = 0;  // of the last message
  };

  Status begin(LockStepRank& rank, uint32_t s) {
    const Step& step = rank.plan->steps[s];
    if (!step.is_transfer()) {
      finish(rank, s, rank.round[s]);
      return {};
    }
    const bool sends = !step.is_receive();
    const Rank self = rank.plan->rank;
    Pipe& pipe = pipes_[{sends ? self : step.peer, sends ? step.peer : self, step.channel}];
    if (pipe.next == pipe.waiting.size() || pipe.holds_sends == sends) {
      pipe.holds_sends = sends;
      pipe.waiting.push_back(s);
      return {};
    }
    LockStepRank& other = ranks_[static_cast<size_t>(step.peer)];
    const uint32_t partner = pipe.waiting[pipe.next++];
    if (other.plan->steps[partner].count != step.count) {
      return defect(*rank.plan, s,
                    ("it meets a step of another length: " + to_text(other.plan->steps[partner])).c_str());
    }
    pipe.round = std::max({pipe.round, rank.round[s] + 1, other.round[partner] + 1});
    messages_.push_back({pipe.round, sends ? self : step.peer, sends ? step.peer : self, step.count});
    finish(rank, s, pipe.round);
    finish(other, partner, pipe.round);
    open_.push_back(step.peer);
    return {};
  }

  static void finish(LockStepRank& rank, uint32_t s, uint32_t round) {
    rank.round[s] = round;
    for (const uint32_t next : rank.dependencies.successors_of(s)) {
      rank.round[next] = std::max(rank.round[next], round);
    }
    rank.executor.done(s, rank.ready);
  }

  std::vector<LockStepRank> ranks_;
  std::vector<Rank> open_;  // that may have something ready
  std::map<std::tuple<Rank, Rank, uint8_t>, Pipe> pipes_;
  std::vector<Message> messages_;
};

// The loads of one round, in blocks.
class Loads {
 public:
  explicit Loads(const LintFabric& fabric) : fabric_(fabric), now_(fabric.links), total_(fabric.links) {}

  Status add(const Message& message, LintReport& report) {
    const std::span<const uint32_t> path = fabric_.path(message.from, message.to);
    if (path.empty() || std::ranges::max(path) >= fabric_.links) {
      return error(Code::InvalidArgument, "lint %s: the fabric has no path from rank %d to rank %d",
                   report.plan.c_str(), message.from, message.to);
    }
    for (const uint32_t link : path) {
      if (now_[link] == 0) busy_.push_back(link);
      now_[link] += message.blocks;
      total_[link] += message.blocks;
      ++report.hops;
    }
    return {};
  }

  LintRound finish_round(uint64_t messages) {
    LintRound round{messages, static_cast<uint32_t>(busy_.size())};
    std::ranges::sort(busy_);
    for (const uint32_t link : busy_) {
      const double load = weighed(link, now_[link]);
      if (load > round.max_load) {
        round.max_load = load;
        round.busiest_link = link;
      }
      now_[link] = 0;
    }
    busy_.clear();
    return round;
  }

  double weighed(uint32_t link, uint64_t blocks) const {
    return static_cast<double>(blocks) * (fabric_.weights.empty() ? 1 : fabric_.weights[link]);
  }
  uint64_t total(uint32_t link) const { return total_[link]; }

 private:
  const LintFabric& fabric_;
  std::vector<uint64_t> now_, total_;
  std::vector<uint32_t> busy_;
};

Status add_loads(std::vector<Message>& messages, const LintFabric& fabric, double vector_blocks, LintReport& report) {
  std::ranges::stable_sort(messages, {}, &Message::round);
  Loads loads(fabric);
  double term_blocks = 0;
  for (size_t first = 0; first < messages.size();) {
    size_t last = first;
    for (; last < messages.size() && messages[last].round == messages[first].round; ++last) {
      CCOM_TRY(loads.add(messages[last], report));
    }
    LintRound round = loads.finish_round(last - first);
    term_blocks += round.max_load;
    round.max_load /= vector_blocks;
    report.rounds.push_back(round);
    first = last;
  }
  report.bandwidth_term = term_blocks / vector_blocks;
  report.link_loads.resize(fabric.links);
  double most = 0;
  for (uint32_t link = 0; link < fabric.links; ++link) {
    report.link_loads[link] = static_cast<double>(loads.total(link)) / vector_blocks;
    if (loads.weighed(link, loads.total(link)) <= most) continue;
    most = loads.weighed(link, loads.total(link));
    report.busiest_link = link;
  }
  return {};
}

}  // namespace

Result<LintReport> lint(std::span<const Plan> plans, const LintFabric& fabric) {
  if (plans.empty()) return error(Code::InvalidArgument, "lint: no plans");
  CCOM_TRY(check_shape(plans));
  Result<std::vector<Message>> messages = LockStep(plans).run();
  if (!messages) return messages.error();
  uint32_t blocks = 1;
  for (const Plan& plan : plans) blocks = std::max({blocks, plan.input_blocks(), plan.output_blocks()});
  LintReport report;
  report.plan = std::string(name_of(plans[0].collective)) + " " + plans[0].algorithm + " of " +
                std::to_string(plans.size()) + " ranks";
  report.messages = messages->size();
  CCOM_TRY(add_loads(*messages, fabric, blocks, report));
  return report;
}

}  // namespace ccom
