// SPDX-License-Identifier: Apache-2.0
#include "plan/checks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/print.h"

namespace ccom {

Status defect(const Plan& plan, size_t step, const char* rule) {
  return error(Code::InternalError, "%s %s, rank %d, step %zu (%s): %s", std::string(name_of(plan.collective)).c_str(),
               plan.algorithm.c_str(), plan.rank, step,
               step < plan.steps.size() ? to_text(plan.steps[step]).c_str() : "end", rule);
}

namespace {

bool in_range(const Plan& plan, Buffer buffer, uint64_t first, uint64_t count) {
  const uint64_t size = buffer == Buffer::Input    ? plan.input_blocks()
                        : buffer == Buffer::Output ? plan.output_blocks()
                                                   : plan.scratch_slots;
  return first + count <= size;
}

// Of a plan with an order: the run's blocks are as long as those at the step's positions, one by one.
bool run_fits_positions(const Plan& plan, const Step& step, Buffer buffer, uint32_t first) {
  for (uint32_t i = 0; i < step.count; ++i) {
    const bool fits = buffer == Buffer::Scratch
                          ? plan.position_of(first + i) == step.block + i
                          : (first + i) % plan.blocks_per_unit == plan.within_unit(step.block + i);
    if (!fits) return false;
  }
  return true;
}

// A run's length is that of the partition's blocks [block, ...): user runs must start there, modulo units (which are
// of equal length), scratch runs must not cross a unit's end unless units have one block.
bool run_fits(const Plan& plan, const Step& step, Buffer buffer, uint32_t first) {
  if (!plan.order.empty()) return run_fits_positions(plan, step, buffer, first);
  const uint32_t unit = plan.blocks_per_unit;
  if (buffer != Buffer::Scratch) return first % unit == step.block % unit;
  return unit == 1 || step.block % unit + step.count <= unit;
}

// All runs that a step reads.
bool sources_fit(const Plan& plan, const Step& step) {
  const uint32_t runs = step.kind == StepKind::Reduce ? step.inputs : 1;
  for (uint32_t k = 0; k < runs; ++k) {
    if (!run_fits(plan, step, step.source_buffer, step.source + k * step.count)) return false;
  }
  return true;
}

bool is_permutation_of(const NumberList& list, uint32_t count) {
  if (list.size() != count) return false;
  std::vector<bool> seen(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (list[i] >= count || seen[list[i]]) return false;
    seen[list[i]] = true;
  }
  return true;
}

// A run of scratch is one of positions as elsewhere; what is moved is as long at both ends, block by block.
Status check_permute(const Plan& plan, size_t index) {
  const Step& step = plan.steps[index];
  if (plan.order.empty() || step.inputs >= plan.permutations.size())
    return defect(plan, index, "there is no such permutation");
  const NumberList& permutation = plan.permutations[step.inputs];
  if (!is_permutation_of(permutation, step.count)) return defect(plan, index, "it goes by no permutation of its run");
  if (step.source_buffer == Buffer::Scratch && !run_fits(plan, step, Buffer::Scratch, step.source))
    return defect(plan, index, "its source has another length");
  if (step.target_buffer == Buffer::Scratch && !run_fits(plan, step, Buffer::Scratch, step.target))
    return defect(plan, index, "its target has another length");
  const auto length = [&](Buffer buffer, uint32_t first, uint32_t i) {
    return buffer == Buffer::Scratch ? plan.within_unit(step.block + i) : (first + i) % plan.blocks_per_unit;
  };
  for (uint32_t i = 0; i < step.count; ++i) {
    if (length(step.target_buffer, step.target, i) != length(step.source_buffer, step.source, permutation[i]))
      return defect(plan, index, "it takes a block for one of another length");
  }
  return {};
}

Status check_step(const Plan& plan, size_t index) {
  const Step& step = plan.steps[index];
  const bool is_permute = step.kind == StepKind::Permute;
  if (step.count == 0) return defect(plan, index, "it moves no blocks");
  if (!plan.order.empty() && uint64_t{step.block} + step.count > plan.order.size())
    return defect(plan, index, "it moves positions that do not exist");
  if (plan.has_unequal_units && plan.blocks_per_unit != 1)
    return defect(plan, index, "it cuts units of unequal length");
  if (step.is_transfer() && (step.peer < 0 || step.peer >= plan.nranks || step.peer == plan.rank)) {
    return defect(plan, index, "its peer does not exist or is the rank itself");
  }
  if (step.completes && (step.kind == StepKind::Send || step.kind == StepKind::Receive || is_permute)) {
    return defect(plan, index, "it combines nothing that it could complete");
  }
  if (step.kind == StepKind::Reduce && (step.inputs < 2 || step.source_buffer != Buffer::Scratch)) {
    return defect(plan, index, "a reduce takes two or more runs of scratch");
  }
  if (step.reads_source()) {
    if (!in_range(plan, step.source_buffer, step.source, step.source_count())) {
      return defect(plan, index, "its source is out of range");
    }
    if (!is_permute && !sources_fit(plan, step)) return defect(plan, index, "its source has another length");
  }
  if (step.writes_target()) {
    if (step.target_buffer == Buffer::Input) return defect(plan, index, "it writes to the input");
    if (!in_range(plan, step.target_buffer, step.target, step.count)) {
      return defect(plan, index, "its target is out of range");
    }
    if (!is_permute && !run_fits(plan, step, step.target_buffer, step.target))
      return defect(plan, index, "its target has another length");
  }
  return is_permute ? check_permute(plan, index) : Status::ok();
}

// What steps with positions go by: all blocks of the longer buffer have one, and every slot is for one.
Status check_positions(const Plan& plan) {
  const size_t end = plan.steps.size();
  if (plan.order.empty()) {
    if (plan.stretches.empty() && plan.permutations.empty()) return {};
    return defect(plan, end, "it has permutations or stretches, but no order");
  }
  if (!is_permutation_of(plan.order, largest_units(plan.collective, plan.nranks) * plan.blocks_per_unit))
    return defect(plan, end, "its order is none of all blocks");
  if (plan.has_unequal_units) return defect(plan, end, "an order is for units of one length");
  const std::vector<Stretch>& stretches = plan.stretches;
  if (stretches.empty() != (plan.scratch_slots == 0) || (!stretches.empty() && stretches[0].slot != 0))
    return defect(plan, end, "its stretches do not begin with the first slot");
  for (size_t i = 0; i < stretches.size(); ++i) {
    const uint32_t next = i + 1 < stretches.size() ? stretches[i + 1].slot : plan.scratch_slots;
    if (next <= stretches[i].slot || uint64_t{stretches[i].position} + (next - stretches[i].slot) > plan.order.size())
      return defect(plan, end, "a stretch of scratch is for no positions");
  }
  return {};
}

// The order that dependencies give, seen from the later step.
class Order {
 public:
  explicit Order(const Dependencies& dependencies)
      : first_(dependencies.waits_for.size() + 1), seen_(dependencies.waits_for.size()) {
    const auto steps = static_cast<uint32_t>(dependencies.waits_for.size());
    for (const uint32_t late : dependencies.successors) ++first_[late + 1];
    for (uint32_t s = 0; s < steps; ++s) first_[s + 1] += first_[s];
    before_.resize(dependencies.successors.size());
    std::vector<uint32_t> fill(first_.begin(), first_.end() - 1);
    for (uint32_t s = 0; s < steps; ++s) {
      for (const uint32_t late : dependencies.successors_of(s)) before_[fill[late]++] = s;  // ascending
    }
  }

  std::span<const uint32_t> directly_before(uint32_t step) const {
    return std::span(before_).subspan(first_[step], first_[step + 1] - first_[step]);
  }

  // Is `early` done whenever `late` starts? Looks at direct edges first, then for a path; program order is topological.
  bool is_ordered(uint32_t early, uint32_t late) {
    if (std::ranges::binary_search(directly_before(late), early)) return true;
    ++question_;
    std::vector<uint32_t> open{late};
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      for (const uint32_t earlier : directly_before(at)) {
        if (earlier == early) return true;
        if (earlier < early || seen_[earlier] == question_) continue;
        seen_[earlier] = question_;
        open.push_back(earlier);
      }
    }
    return false;
  }

 private:
  std::vector<uint32_t> first_, before_;
  std::vector<uint64_t> seen_;  // by step: the last question that visited it
  uint64_t question_ = 0;
};

// The cells cut where any step's run begins or ends: within a piece all cells have the same history.
class Pieces {
 public:
  explicit Pieces(const Plan& plan) : cells_(plan) {
    for (const Step& step : plan.steps) {
      for_each_run(step, [this](uint32_t first, uint32_t count, bool) {
        cuts_.push_back(first);
        cuts_.push_back(first + count);
      });
    }
    std::ranges::sort(cuts_);
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
  }
  size_t count() const { return cuts_.size(); }

  // fn(piece, whether it is written): what the step reads, then what it writes.
  template <typename Fn>
  void for_each(const Step& step, Fn fn) const {
    for_each_run(step, [this, &fn](uint32_t first, uint32_t count, bool is_write) {
      auto piece = static_cast<size_t>(std::ranges::lower_bound(cuts_, first) - cuts_.begin());
      for (; cuts_[piece] < first + count; ++piece) fn(piece, is_write);
    });
  }

 private:
  template <typename Fn>
  void for_each_run(const Step& step, Fn fn) const {
    if (step.reads_source()) {
      cells_.for_each_run(step.source_buffer, step.source, step.source_count(),
                          [&fn](uint32_t first, uint32_t count) { fn(first, count, false); });
    }
    if (step.writes_target()) {
      cells_.for_each_run(step.target_buffer, step.target, step.count,
                          [&fn](uint32_t first, uint32_t count) { fn(first, count, true); });
    }
  }

  Cells cells_;
  std::vector<uint32_t> cuts_;
};

// A touch must come after the last write, a write also after the reads since; what came before that follows.
Status check_races(const Plan& plan, Order& order) {
  struct History {
    uint32_t writer = Dependencies::kNone;
    std::vector<uint32_t> readers;
  };
  const Pieces pieces(plan);
  std::vector<History> history(pieces.count());
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    bool races = false;
    const auto require = [&](uint32_t early) {
      races = races || (early != Dependencies::kNone && early != s && !order.is_ordered(early, s));
    };
    pieces.for_each(plan.steps[s], [&](size_t piece, bool is_write) {
      History& past = history[piece];
      if (!is_write) {
        require(past.writer);
        past.readers.push_back(s);
        return;
      }
      if (past.readers.empty()) require(past.writer);
      for (const uint32_t reader : past.readers) require(reader);
      past.writer = s;
      past.readers.clear();
    });
    if (races) return defect(plan, s, "it races with an earlier step for a block");
  }
  return {};
}

// What the executor goes by: every step waits for what was found, no more and no less, and nothing waits for what comes
// later in the program. Transfers of a channel in one direction start one after another, and sends of an egress.
Status check_counts(const Plan& plan, const Dependencies& dependencies, const Order& order) {
  std::map<std::tuple<Rank, uint8_t, bool>, uint32_t> last;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    auto waits_for = static_cast<uint32_t>(order.directly_before(s).size());
    if (waits_for > 0 && order.directly_before(s).back() >= s) return defect(plan, s, "it waits for a later step");
    if (step.is_transfer()) {
      const auto pipe = step.egress > 0 ? std::tuple(Rank{-1}, step.egress, false)
                                        : std::tuple(step.peer, step.channel, step.is_receive());
      const auto [entry, is_first] = last.try_emplace(pipe, s);
      if (!is_first) {
        ++waits_for;
        if (dependencies.next_on_channel[std::exchange(entry->second, s)] != s) {
          return defect(plan, s, "it may start before the transfer ahead of it on its channel or egress");
        }
      }
    }
    if (dependencies.waits_for[s] != waits_for) return defect(plan, s, "its dependencies are not counted right");
  }
  return {};
}

}  // namespace

Status check_order(const Plan& plan, const Dependencies& dependencies) {
  Order order(dependencies);
  CCOM_TRY(check_counts(plan, dependencies, order));
  return check_races(plan, order);
}

// A channel's order is that of its egress.
Status check_egresses(const Plan& plan) {
  std::map<std::pair<Rank, uint8_t>, uint8_t> egresses;
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.kind != StepKind::Send) {
      if (step.egress > 0) return defect(plan, s, "only sends have an egress");
    } else if (egresses.try_emplace({step.peer, step.channel}, step.egress).first->second != step.egress) {
      return defect(plan, s, "a send before it on its channel has another egress");
    }
  }
  return {};
}

Status check_steps(const Plan& plan) {
  CCOM_TRY(check_positions(plan));
  for (size_t s = 0; s < plan.steps.size(); ++s) CCOM_TRY(check_step(plan, s));
  if (std::ranges::any_of(plan.steps, [](const Step& step) { return step.egress > 0; })) return check_egresses(plan);
  return {};
}

Status check_shape(std::span<const Plan> plans) {
  const Plan& first = plans.front();
  for (size_t r = 0; r < plans.size(); ++r) {
    const Plan& plan = plans[r];
    if (plan.rank != static_cast<Rank>(r) || plan.nranks != static_cast<int>(plans.size())) {
      return defect(plan, plan.steps.size(), "the plans are not one per rank, by rank");
    }
    if (plan.collective != first.collective || plan.blocks_per_unit != first.blocks_per_unit ||
        plan.root != first.root || plan.order != first.order) {
      return defect(plan, plan.steps.size(), "the ranks' plans are for different calls");
    }
    CCOM_TRY(check_steps(plan));
  }
  return {};
}

}  // namespace ccom
