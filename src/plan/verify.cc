// SPDX-License-Identifier: Apache-2.0
#include "plan/verify.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "plan/checks.h"
#include "plan/print.h"
#include "plan/symbolic_rank.h"

namespace ccom {
namespace {

// Runs the executors of all ranks.
class SymbolicRun {
 public:
  SymbolicRun(std::span<const Plan> plans, const VerifyOptions& options)
      : random_(options.seed), spec_(spec_of(plans.front(), options.seed)) {
    spec_.choose(options.blocks, random_);
    ranks_.reserve(plans.size());
    for (const Plan& plan : plans) ranks_.emplace_back(plan);
  }

  // The same on given values: items are the blocks of these units.
  SymbolicRun(std::span<const Plan> plans, const BlockLists& blocks, const UnitValues& inputs, uint64_t seed)
      : SymbolicRun(plans, {seed, 0}) {
    blocks_ = &blocks;
    inputs_ = &inputs;
  }

  Result<VerifyReport> run() {
    CCOM_TRY(run_to_the_end());
    for (SymbolicRank& rank : ranks_) CCOM_TRY(check_results(rank));
    report_.items = spec_.items();
    report_.followed = spec_.followed();
    return report_;
  }

  Result<UnitValues> run_values() {
    CCOM_TRY(run_to_the_end());
    UnitValues outputs(ranks_.size());
    for (const SymbolicRank& rank : ranks_) {
      CCOM_TRY_ASSIGN(outputs[static_cast<size_t>(rank.plan->rank)], collect_units(rank, *blocks_));
    }
    return outputs;
  }

 private:
  Status run_to_the_end() {
    for (SymbolicRank& rank : ranks_) CCOM_TRY(check_order(*rank.plan, rank.dependencies));
    for (SymbolicRank& rank : ranks_) {
      fill_input(rank);
      rank.executor.start(rank.ready);
      CCOM_TRY(issue(rank));
    }
    while (!events_.empty()) CCOM_TRY(complete_one());
    for (const SymbolicRank& rank : ranks_) {
      if (!rank.executor.finished()) return deadlock(rank);
    }
    return {};
  }

  static CollectiveSpec spec_of(const Plan& any, uint64_t seed) {
    return {any.collective, any.nranks, any.root, any.blocks_per_unit, seed};
  }

  struct Event {  // something that may complete now: a local step, or a matched transfer
    SymbolicRank* rank;
    uint32_t step;
    SymbolicRank* receiver = nullptr;
    uint32_t receive_step = 0;
    std::optional<SymbolicBlocks> in_flight{};  // the sender's values, if they were read early
    SymbolicBlocks own{};
  };

  SymbolicRank& rank_at(Rank rank) { return ranks_[static_cast<size_t>(rank)]; }

  void fill_input(SymbolicRank& rank) {
    const Plan& plan = *rank.plan;
    SymbolicBlocks blocks;
    for (uint32_t b = 0; inputs_ != nullptr && b < plan.input_blocks(); ++b) {
      const auto rank_index = static_cast<size_t>(plan.rank);
      const uint32_t unit = b / plan.blocks_per_unit;
      std::optional<Value> value = (*inputs_)[rank_index][unit];
      if (!value) continue;
      value->origin = item_of(blocks_->gives[rank_index][unit], plan, b);
      blocks.push_back({b, *value});
    }
    for (uint32_t b = 0; inputs_ == nullptr && b < plan.input_blocks(); ++b) {
      const uint64_t item = spec_.input_item(plan, b);
      if (spec_.follows(item)) blocks.push_back({b, spec_.contribution(plan.rank, item)});
    }
    if (!blocks.empty()) rank.memory.store(Buffer::Input, 0, plan.input_blocks(), blocks);
  }

  // The pipe that a transfer uses.
  MessageQueue& pipe_of(const SymbolicRank& rank, const Step& step) {
    SymbolicRank& receiver = rank_at(step.is_receive() ? rank.plan->rank : step.peer);
    const Rank from = step.is_receive() ? step.peer : rank.plan->rank;
    const uint64_t key = static_cast<uint64_t>(from) << 8 | step.channel;
    const auto found = std::ranges::lower_bound(receiver.incoming, key, {}, &MessageQueue::key);
    if (found != receiver.incoming.end() && found->key == key) return *found;
    return *receiver.incoming.insert(found, MessageQueue{key});
  }

  // Starts what is ready: transfers wait for their partner, local steps become events.
  Status issue(SymbolicRank& rank) {
    for (const uint32_t s : std::exchange(rank.ready, {})) {
      const Step& step = rank.plan->steps[s];
      if (!step.is_transfer()) {
        events_.push_back({&rank, s});
        continue;
      }
      Pending pending{s, {}};
      if (step.kind == StepKind::ReceiveReduce) CCOM_TRY(load(rank, s, 0, pending.own));
      // The target may be overwritten at any time from now on.
      if (step.is_receive()) rank.memory.forget(step.target_buffer, step.target, step.count);
      MessageQueue& pipe = pipe_of(rank, step);
      if (pipe.waiting.empty() || pipe.holds_sends != step.is_receive()) {
        pipe.holds_sends = !step.is_receive();
        pipe.waiting.push_back(std::move(pending));
        continue;
      }
      Pending partner = std::move(pipe.waiting[pipe.next++]);
      if (pipe.next == pipe.waiting.size()) {
        pipe.waiting.clear();
        pipe.next = 0;
      }
      SymbolicRank& other = rank_at(step.peer);
      CCOM_TRY(step.is_receive() ? match(other, partner, rank, pending) : match(rank, pending, other, partner));
    }
    return {};
  }

  Status match(SymbolicRank& sender, const Pending& send, SymbolicRank& receiver, Pending& receive) {
    const Step& from = sender.plan->steps[send.step];
    const Step& to = receiver.plan->steps[receive.step];
    if (from.count != to.count || !are_as_long(*sender.plan, from, *receiver.plan, to)) {
      return defect(*receiver.plan, receive.step,
                    ("the send that it meets has another length: " + to_text(from)).c_str());
    }
    Event event{&sender, send.step, &receiver, receive.step, {}, std::move(receive.own)};
    if (random_() % 2 == 0) CCOM_TRY(load(sender, send.step, 0, event.in_flight.emplace()));
    events_.push_back(std::move(event));
    return {};
  }

  // Units are of one length, so that of the first blocks tells, unless positions say which blocks follow.
  static bool are_as_long(const Plan& sender, const Step& from, const Plan& receiver, const Step& to) {
    const uint32_t compared = sender.order.empty() ? 1 : from.block == to.block ? 0 : from.count;
    for (uint32_t i = 0; i < compared; ++i) {
      if (sender.within_unit(from.block + i) != receiver.within_unit(to.block + i)) return false;
    }
    return true;
  }

  // Any of them; of many mostly one of the latest, whose ranks are still in the caches.
  size_t pick_event() {
    constexpr uint64_t kLatest = 32;
    const uint64_t draw = random_();
    const uint64_t count = events_.size();
    return count <= kLatest || draw % 16 == 0 ? (draw >> 8) % count : count - 1 - (draw >> 8) % kLatest;
  }

  Status complete_one() {
    const size_t pick = pick_event();
    Event event = std::move(events_[pick]);
    events_[pick] = std::move(events_.back());
    events_.pop_back();
    if (event.receiver == nullptr) {
      CCOM_TRY(run_local(*event.rank, event.step));
    } else {
      CCOM_TRY(run_transfer(event));
      event.receiver->executor.done(event.receive_step, event.receiver->ready);
      CCOM_TRY(issue(*event.receiver));
    }
    event.rank->executor.done(event.step, event.rank->ready);
    return issue(*event.rank);
  }

  Status run_local(SymbolicRank& rank, uint32_t s) {
    const Step& step = rank.plan->steps[s];
    SymbolicBlocks blocks;
    CCOM_TRY(load(rank, s, 0, blocks));
    for (uint32_t k = 1; step.kind == StepKind::Reduce && k < step.inputs; ++k) {
      SymbolicBlocks operand;
      CCOM_TRY(load(rank, s, k, operand));
      CCOM_TRY(add(rank, s, blocks, operand));
    }
    if (step.kind == StepKind::Reduce) {
      for (Placed& placed : blocks) round_once(placed.value, step.inputs);
    }
    if (step.kind == StepKind::Permute) permute(rank.plan->permutations[step.inputs], blocks);
    return store(rank, s, blocks);
  }

  static void permute(const NumberList& permutation, SymbolicBlocks& blocks) {
    std::vector<uint32_t> target_of(permutation.size());
    for (uint32_t i = 0; i < permutation.size(); ++i) target_of[permutation[i]] = i;
    for (Placed& placed : blocks) placed.offset = target_of[placed.offset];
    std::ranges::sort(blocks, {}, &Placed::offset);
  }

  Status run_transfer(Event& event) {
    const Step& to = event.receiver->plan->steps[event.receive_step];
    if (!event.in_flight) CCOM_TRY(load(*event.rank, event.step, 0, event.in_flight.emplace()));
    SymbolicBlocks& blocks = *event.in_flight;
    CCOM_TRY(check_units(*event.rank, event.step, blocks));
    if (to.kind == StepKind::ReceiveReduce) {
      if (!receives_left_operand(*event.receiver->plan, to)) std::swap(blocks, event.own);
      CCOM_TRY(add(*event.receiver, event.receive_step, blocks, event.own));
      for (Placed& placed : blocks) round_once(placed.value, 2);
    }
    return store(*event.receiver, event.receive_step, blocks);
  }

  static Status add(const SymbolicRank& rank, uint32_t s, SymbolicBlocks& sum, const SymbolicBlocks& operand) {
    if (sum.size() != operand.size())
      return defect(*rank.plan, s, "it combines a block with one that holds nothing yet");
    for (size_t i = 0; i < sum.size(); ++i) {
      Value& value = sum[i].value;
      if (sum[i].offset != operand[i].offset || value.origin != operand[i].value.origin) {
        return defect(*rank.plan, s, "it combines two different blocks of data");
      }
      if (value.completed || operand[i].value.completed) {
        return defect(*rank.plan, s, "it adds to a result that is complete already");
      }
      value = combine(value, operand[i].value);
    }
    return {};
  }

  Status store(SymbolicRank& rank, uint32_t s, SymbolicBlocks& blocks) {
    const Step& step = rank.plan->steps[s];
    if (spec_.follows_all() && blocks.size() != step.count) {
      return defect(*rank.plan, s, "it uses a block that holds nothing yet");
    }
    CCOM_TRY(check_units(rank, s, blocks));
    for (Placed& placed : blocks) {
      if (!step.completes) break;
      if (placed.value.completed) return defect(*rank.plan, s, "the result is complete already");
      placed.value.completed = true;
    }
    rank.memory.store(step.target_buffer, step.target, step.count, blocks);
    return {};
  }

  // Where units differ in length: a step is as long as the data that it moves.
  Status check_units(const SymbolicRank& rank, uint32_t s, const SymbolicBlocks& blocks) const {
    const Plan& plan = *rank.plan;
    if (blocks_ == nullptr || !plan.has_unequal_units) return {};
    const Step& step = plan.steps[s];
    const BlockLists& all = *blocks_;
    const std::vector<uint32_t>& units =
        (step.kind == StepKind::Send ? all.gives : all.gets)[static_cast<size_t>(plan.rank)];
    for (const Placed& placed : blocks) {
      const size_t unit = size_t{step.block} + placed.offset;
      if (unit >= units.size() || placed.value.origin != units[unit])
        return defect(plan, s, "it takes a unit for one of another length");
    }
    return {};
  }

  Status deadlock(const SymbolicRank& stuck) {
    for (const SymbolicRank& rank : ranks_) {
      for (const MessageQueue& pipe : rank.incoming) {
        if (pipe.waiting.empty()) continue;
        const SymbolicRank& who = pipe.holds_sends ? rank_at(static_cast<Rank>(pipe.key >> 8)) : rank;
        return defect(*who.plan, pipe.waiting[pipe.next].step, "it waits for ever for its partner");
      }
    }
    return defect(*stuck.plan, stuck.plan->steps.size(), "it never finishes");
  }

  // Rules 5 to 7.
  Status check_results(SymbolicRank& rank) {
    const Plan& plan = *rank.plan;
    SymbolicBlocks results;
    if (plan.output_blocks() > 0) rank.memory.load(Buffer::Output, 0, plan.output_blocks(), results);
    auto held = results.begin();
    for (uint32_t b = 0; b < plan.output_blocks(); ++b) {
      const bool is_held = held != results.end() && held->offset == b;
      const Value value = is_held ? (held++)->value : Value{};
      const uint64_t item = spec_.output_item(plan, b);
      if (!spec_.follows(item)) {
        if (is_held) return wrong(plan, b, "holds another block's data");
        continue;
      }
      if (!is_held) return wrong(plan, b, "is never written");
      if (value.sum != spec_.expected(item) || value.origin != item) {
        return wrong(plan, b, spec_.what_is_wrong(item, value.sum).c_str());
      }
      if (spec_.reduces() && !value.completed) return wrong(plan, b, "passes no step that completes it");
      if (!spec_.reduces() && value.completed) {
        return wrong(plan, b, "is marked complete although nothing is reduced");
      }
      if (plan.collective == Collective::AllReduce &&
          expression_of_.try_emplace(item, value.expression).first->second != value.expression) {
        return wrong(plan, b, "is another expression than on another rank: bits may differ");
      }
      report_.max_roundings = std::max(report_.max_roundings, value.roundings);
      if (report_.order != SumOrder::Any) report_.order = std::min(report_.order, spec_.order_of(item, value));
    }
    size_t sent = 0;
    for (const Step& step : plan.steps) sent += step.kind == StepKind::Send ? step.count : 0;
    report_.max_sent_blocks = std::max(report_.max_sent_blocks, sent);
    report_.steps += plan.steps.size();
    return {};
  }

  std::mt19937_64 random_;
  const BlockLists* blocks_ = nullptr;  // set for given values
  const UnitValues* inputs_ = nullptr;
  CollectiveSpec spec_;
  std::vector<SymbolicRank> ranks_;
  std::vector<Event> events_;
  std::unordered_map<uint64_t, uint64_t> expression_of_;
  VerifyReport report_;
};

}  // namespace

Result<VerifyReport> verify(std::span<const Plan> plans, const VerifyOptions& options) {
  if (plans.empty()) return error(Code::InvalidArgument, "verify: no plans");
  CCOM_TRY(check_shape(plans));
  return SymbolicRun(plans, options).run();
}

Result<VerifyReport> verify(std::span<const Plan> plans, uint64_t seed) {
  return verify(plans, VerifyOptions{seed, 0});
}

Result<UnitValues> run_values(std::span<const Plan> plans, const BlockLists& blocks, const UnitValues& inputs,
                              uint64_t seed) {
  if (plans.empty()) return error(Code::InvalidArgument, "verify: no plans");
  CCOM_TRY(check_shape(plans));
  for (const Plan& plan : plans) {
    const auto rank = static_cast<size_t>(plan.rank);
    if (plan.input_units > blocks.gives[rank].size() || plan.output_units != blocks.gets[rank].size())
      return defect(plan, plan.steps.size(), "its buffers are not those of the stage");
  }
  return SymbolicRun(plans, blocks, inputs, seed).run_values();
}

}  // namespace ccom
