// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/reference.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "plan/checks.h"
#include "plan/dependencies.h"
#include "plan/print.h"

namespace ccom {
namespace {

using Touched = std::vector<std::vector<uint32_t>>;  // cells, ascending, by step

struct Touches {
  explicit Touches(const Plan& plan) : reads(plan.steps.size()), writes(plan.steps.size()) {
    const Cells cells(plan);
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      for (uint32_t i = 0; step.reads_source() && i < step.source_count(); ++i) {
        reads[s].push_back(cells.of(step.source_buffer, step.source + i));
      }
      for (uint32_t i = 0; step.writes_target() && i < step.count; ++i) {
        writes[s].push_back(cells.of(step.target_buffer, step.target + i));
      }
      std::ranges::sort(reads[s]);
      std::ranges::sort(writes[s]);
    }
  }
  static bool meet(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    return std::ranges::any_of(a, [&b](uint32_t cell) { return std::ranges::binary_search(b, cell); });
  }
  bool conflict(size_t a, size_t b) const {
    return meet(writes[a], writes[b]) || meet(writes[a], reads[b]) || meet(reads[a], writes[b]);
  }
  Touched reads, writes;
};

bool share_pipe(const Step& a, const Step& b) {
  return a.is_transfer() && b.is_transfer() && a.peer == b.peer && a.channel == b.channel &&
         a.is_receive() == b.is_receive();
}

// Values by exact names.
struct Exact {
  int expression = -1;  // into Trees; -1: nothing
  bool completed = false;
};

class Trees {
 public:
  struct Tree {
    uint64_t item = 0;
    std::vector<int> times{};  // each rank contributes
  };
  int leaf(Rank rank, uint64_t item, int nranks) {
    return intern({0, rank, static_cast<int>(item)}, [&] {
      Tree tree{item, std::vector<int>(static_cast<size_t>(nranks))};
      tree.times[static_cast<size_t>(rank)] = 1;
      return tree;
    });
  }
  int sum(int a, int b) {
    return intern({1, std::min(a, b), std::max(a, b)}, [&] {
      Tree tree = all_[static_cast<size_t>(a)];
      const Tree& other = all_[static_cast<size_t>(b)];
      for (size_t r = 0; r < tree.times.size(); ++r) tree.times[r] += other.times[r];
      return tree;
    });
  }
  // A sum of more than two that is rounded once.
  int rounded(int a, int inputs) {
    return intern({2, a, inputs}, [&] { return all_[static_cast<size_t>(a)]; });
  }
  const Tree& at(int id) const { return all_[static_cast<size_t>(id)]; }

 private:
  template <typename Make>
  int intern(std::tuple<int, int, int> name, Make make) {
    const auto [known, is_new] = ids_.try_emplace(name, static_cast<int>(all_.size()));
    if (is_new) all_.push_back(make());
    return known->second;
  }
  std::map<std::tuple<int, int, int>, int> ids_;
  std::vector<Tree> all_;
};

class Reference {
 public:
  explicit Reference(std::span<const Plan> plans) : plans_(plans) {
    for (const Plan& plan : plans) {
      first_.push_back(steps_);
      steps_ += plan.steps.size();
      memory_.emplace_back(Cells(plan).count());
    }
  }

  std::string verdict() {
    if (const Status shape = check_shape(plans_); !shape.is_ok()) return shape.message();
    for (const auto rule : {&Reference::match, &Reference::order, &Reference::evaluate, &Reference::results}) {
      if (const std::string found = (this->*rule)(); !found.empty()) return found;
    }
    return "";
  }

 private:
  size_t id(Rank rank, size_t step) const { return first_[static_cast<size_t>(rank)] + step; }
  uint32_t unit() const { return plans_[0].blocks_per_unit; }

  std::string match() {
    std::map<std::tuple<Rank, Rank, uint8_t>, std::array<std::vector<std::pair<Rank, size_t>>, 2>> pipes;
    for (const Plan& plan : plans_) {
      for (size_t s = 0; s < plan.steps.size(); ++s) {
        const Step& step = plan.steps[s];
        if (!step.is_transfer()) continue;
        const bool in = step.is_receive();
        pipes[{in ? step.peer : plan.rank, in ? plan.rank : step.peer, step.channel}][in].push_back({plan.rank, s});
      }
    }
    partner_.assign(steps_, std::nullopt);
    for (const auto& [pipe, ends] : pipes) {
      if (ends[0].size() != ends[1].size()) return "sends and receives differ in number";
      for (size_t k = 0; k < ends[0].size(); ++k) {
        const Step& send = step_of(ends[0][k]);
        const Step& receive = step_of(ends[1][k]);
        if (send.count != receive.count) return "lengths differ";
        for (uint32_t i = 0; i < (plans_[0].order.empty() ? 1 : send.count); ++i) {
          if (plans_[0].within_unit(send.block + i) != plans_[0].within_unit(receive.block + i))
            return "lengths differ";
        }
        partner_[id(ends[0][k].first, ends[0][k].second)] = ends[1][k];
        partner_[id(ends[1][k].first, ends[1][k].second)] = ends[0][k];
      }
    }
    return "";
  }

  const Step& step_of(std::pair<Rank, size_t> at) const {
    return plans_[static_cast<size_t>(at.first)].steps[at.second];
  }

  // Events: 2 * id is a step's start, 2 * id + 1 its end. Fills order_ with ends.
  std::string order() {
    std::vector<std::vector<size_t>> after(2 * steps_);
    for (const Plan& plan : plans_) {
      const Touches touches(plan);
      for (size_t late = 0; late < plan.steps.size(); ++late) {
        const size_t me = id(plan.rank, late);
        after[2 * me].push_back(2 * me + 1);
        if (partner_[me]) after[2 * id(partner_[me]->first, partner_[me]->second)].push_back(2 * me + 1);
        for (size_t early = 0; early < late; ++early) {
          const size_t other = id(plan.rank, early);
          if (share_pipe(plan.steps[early], plan.steps[late])) after[2 * other].push_back(2 * me);
          if (touches.conflict(early, late)) after[2 * other + 1].push_back(2 * me);
        }
      }
    }
    std::vector<int> waits(after.size());
    for (const auto& events : after) {
      for (const size_t event : events) ++waits[event];
    }
    std::vector<size_t> open;
    for (size_t event = 0; event < waits.size(); ++event) {
      if (waits[event] == 0) open.push_back(event);
    }
    size_t seen = 0;
    for (; !open.empty(); ++seen) {
      const size_t event = open.back();
      open.pop_back();
      if (event % 2 == 1) order_.push_back(event / 2);
      for (const size_t next : after[event]) {
        if (--waits[next] == 0) open.push_back(next);
      }
    }
    return seen == after.size() ? "" : "something waits in a circle";
  }

  // Both ends of a transfer have the same causes: it is evaluated at the first of them, before anything that waits for
  // either.
  std::string evaluate() {
    fill_input();
    std::vector<bool> done(steps_);
    for (const size_t event : order_) {
      if (done[event]) continue;
      const auto rank = static_cast<size_t>(std::ranges::upper_bound(first_, event) - first_.begin() - 1);
      std::pair<Rank, size_t> at{static_cast<Rank>(rank), event - first_[rank]};
      std::pair<Rank, size_t> source = at;
      done[event] = true;
      if (partner_[event]) {
        done[id(partner_[event]->first, partner_[event]->second)] = true;
        if (step_of(at).kind == StepKind::Send) at = *partner_[event];
        source = *partner_[id(at.first, at.second)];
      }
      if (const std::string found = run(at, source); !found.empty()) return found;
    }
    return "";
  }

  std::string run(std::pair<Rank, size_t> at, std::pair<Rank, size_t> source) {
    const Step& step = step_of(at);
    const Step& from = step_of(source);
    std::vector<Exact> values(step.count);
    for (uint32_t i = 0; i < step.count; ++i) {
      const bool permutes = from.kind == StepKind::Permute;
      const uint32_t read = permutes ? plans_[static_cast<size_t>(source.first)].permutations[from.inputs][i] : i;
      if (!load(source.first, from, 0, read, values[i])) return "it reads nothing, or another length: " + to_text(from);
      const uint32_t inputs = step.kind == StepKind::Reduce          ? step.inputs
                              : step.kind == StepKind::ReceiveReduce ? 2
                                                                     : 1;
      for (uint32_t k = 1; k < inputs; ++k) {
        Exact operand;
        if (!load(at.first, step, step.kind == StepKind::Reduce ? k : 0, i, operand)) return "an operand is nothing";
        if (operand.completed || values[i].completed) return "adds to what is complete";
        if (trees_.at(operand.expression).item != trees_.at(values[i].expression).item) return "adds different blocks";
        values[i].expression = trees_.sum(values[i].expression, operand.expression);
      }
      if (inputs > 2) values[i].expression = trees_.rounded(values[i].expression, static_cast<int>(inputs));
      if (step.completes && values[i].completed) return "completes twice";
      values[i].completed |= step.completes;
    }
    for (uint32_t i = 0; i < step.count; ++i) cell(at.first, step.target_buffer, step.target + i) = values[i];
    return "";
  }

  Exact& cell(Rank rank, Buffer buffer, uint32_t index) {
    return memory_[static_cast<size_t>(rank)][Cells(plans_[static_cast<size_t>(rank)]).of(buffer, index)];
  }

  bool load(Rank rank, const Step& step, uint32_t k, uint32_t i, Exact& value) {
    value = cell(rank, step.source_buffer, step.source + k * step.count + i);
    if (value.expression < 0) return false;
    if (step.kind == StepKind::Permute) return true;  // check_shape has compared the lengths
    const Plan& plan = plans_[static_cast<size_t>(rank)];
    const uint32_t block = plan.order.empty() ? (step.block + i) % unit() : plan.within_unit(step.block + i);
    return trees_.at(value.expression).item % unit() == block;
  }

  void fill_input() {
    for (const Plan& plan : plans_) {
      const auto n = static_cast<uint64_t>(plan.nranks);
      const auto self = static_cast<uint64_t>(plan.rank);
      for (uint32_t b = 0; b < plan.input_blocks(); ++b) {
        uint64_t item = b;
        const bool collects = plan.collective == Collective::AllGather || plan.collective == Collective::Gather ||
                              plan.collective == Collective::Barrier;
        if (collects) item += self * unit();
        if (plan.collective == Collective::AllToAll) item += self * n * unit();
        cell(plan.rank, Buffer::Input, b) = {trees_.leaf(plan.rank, item, plan.nranks), false};
      }
    }
  }

  std::string results() {
    std::map<uint64_t, int> everywhere;
    for (const Plan& plan : plans_) {
      const auto n = static_cast<uint64_t>(plan.nranks);
      const auto self = static_cast<uint64_t>(plan.rank);
      const Collective collective = plan.collective;
      const bool sums = collective == Collective::AllReduce || collective == Collective::Reduce ||
                        collective == Collective::ReduceScatter;
      for (uint32_t b = 0; b < plan.output_blocks(); ++b) {
        uint64_t item = b;
        if (collective == Collective::ReduceScatter || collective == Collective::Scatter) item += self * unit();
        if (collective == Collective::AllToAll) item = (b / unit() * n + self) * unit() + b % unit();
        const Exact value = cell(plan.rank, Buffer::Output, b);
        if (value.expression < 0 || trees_.at(value.expression).item != item) return "an output holds another block";
        const std::vector<int>& times = trees_.at(value.expression).times;
        if (std::ranges::count(times, 1) != (sums ? plan.nranks : 1) || std::ranges::max(times) != 1)
          return "a wrong sum";
        if (value.completed != sums) return "completed wrongly";
        if (collective == Collective::AllReduce &&
            everywhere.try_emplace(item, value.expression).first->second != value.expression) {
          return "expressions differ";
        }
      }
    }
    return "";
  }

  std::span<const Plan> plans_;
  std::vector<size_t> first_;
  size_t steps_ = 0;
  std::vector<std::optional<std::pair<Rank, size_t>>> partner_;
  std::vector<size_t> order_;
  std::vector<std::vector<Exact>> memory_;
  Trees trees_;
};

// A step without what means nothing.
Step meaning_of(const Plan& plan, Step step) {
  if (!step.reads_source()) step.source = 0, step.source_buffer = Buffer::Input;
  if (!step.writes_target()) step.target = 0, step.target_buffer = Buffer::Output;
  if (!step.is_transfer()) step.peer = -1, step.channel = 0;
  if (step.kind != StepKind::Reduce && step.kind != StepKind::Permute) step.inputs = 0;
  if (plan.order.empty()) step.block %= plan.blocks_per_unit;
  return step;
}

auto key_of(const Step& step) {
  return std::tuple(step.kind, step.source_buffer, step.target_buffer, step.channel, step.inputs, step.completes,
                    step.peer, step.source, step.target, step.count, step.block);
}

}  // namespace

std::string reference_verdict(std::span<const Plan> plans) { return Reference(plans).verdict(); }

std::vector<Step> normal_form(const Plan& plan) {
  const Touches touches(plan);
  const size_t steps = plan.steps.size();
  std::vector<bool> taken(steps);
  std::vector<Step> form;
  while (form.size() < steps) {
    std::optional<size_t> best;
    for (size_t s = 0; s < steps; ++s) {
      if (taken[s]) continue;
      bool is_free = true;
      for (size_t early = 0; early < s && is_free; ++early) {
        is_free = taken[early] || !(touches.conflict(early, s) || share_pipe(plan.steps[early], plan.steps[s]));
      }
      const auto key = [&](size_t at) { return key_of(meaning_of(plan, plan.steps[at])); };
      if (is_free && (!best || key(s) < key(*best))) best = s;
    }
    taken[*best] = true;
    form.push_back(meaning_of(plan, plan.steps[*best]));
  }
  return form;
}

}  // namespace ccom
