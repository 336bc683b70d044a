// SPDX-License-Identifier: Apache-2.0
#include "plan/node_verify.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <tuple>

#include "plan/fingerprint.h"

namespace ccom {
namespace {

struct Value {
  uint64_t sum = 0;
  uint64_t expression = 0;
  int roundings = 0;
  bool completed = false;
  bool defined = false;
};

// A piece of memory. In place, Input and Output are one; `unit` tells them by their common position.
struct Cell {
  Area area;
  Rank owner;
  size_t span;  // tile (buffers, over all calls) or bank (staging)
  int64_t piece;
  auto operator<=>(const Cell&) const = default;
};

struct Access {
  Rank rank;
  size_t meets;  // the rank had passed when it did this
};

struct Content {
  Value value;
  Access written{-1, 0};
  std::vector<Access> read;
};

class NodeRun {
 public:
  explicit NodeRun(std::span<const NodePlan> first) : ranks_(first.size()), silent_(first.size()) {
    for (size_t r = 0; r < ranks_.size(); ++r) ranks_[r].knows.assign(ranks_.size(), 0);
  }

  Result<NodeReport> run(std::span<const NodeCallPlans> calls) {
    for (const NodeCallPlans& call : calls) CCOM_TRY(run_call(call));
    return report_;
  }

 private:
  struct RankState {
    std::vector<size_t> knows;  // by rank: how many of its meets' arrivals happened before now; own: meets arrived at
    std::array<std::vector<Access>, 2> heard;  // by bank: who has read this rank's line, and when
  };

  Status run_call(const NodeCallPlans& call) {
    plans_ = call.plans;
    const size_t slots = tile_slots(plans_[0], call.tiles);
    for (const NodePlan& plan : plans_) {
      if (plan.nranks != static_cast<int>(ranks_.size()) || tile_slots(plan, call.tiles) != slots ||
          plan.staged != plans_[0].staged)
        return defect(plan, "ranks meet unequally often, or differ in whether they stage");
      if (!plan.phases.back().waits_for.empty()) return defect(plan, "the last phase waits");
      for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
        const bool all = plan.phases[phase].waits_for.size() + 1 == plans_.size();
        if (plan.phases[phase].is_full != plans_[0].phases[phase].is_full || (plan.phases[phase].is_full && !all))
          return defect(plan, "a full meet that not everybody waits in");
      }
      for (size_t tile = 0; tile < call.tiles; ++tile) fill(plan, tile);
    }
    for (size_t slot = 0; slot < slots; ++slot) {
      // Between two meets ranks run in any order: races are found by clocks, values need one legal order. Backwards
      // and forwards in turn, so that a plan which leans on one order is found by its values too.
      for (size_t i = 0; i < ranks_.size(); ++i) {
        const auto rank = static_cast<Rank>(slot % 2 == 0 ? i : ranks_.size() - 1 - i);
        CCOM_TRY(run_slot(rank, slot, call.tiles));
      }
      if (slot + 1 < slots) CCOM_TRY(meet(slot, call.tiles));
    }
    CCOM_TRY(check_return());
    CCOM_TRY(check_results(call.tiles));
    if (calls_++ == 0) report_.meets = slots - 1;
    if (plans_[0].staged) tiles_before_ += call.tiles;
    std::erase_if(
        cells_, [](const auto& entry) { return entry.first.area == Area::Input || entry.first.area == Area::Output; });
    return {};
  }

  static Status defect(const NodePlan& plan, const char* what) {
    return error(Code::InternalError, "%s, %s of %d ranks, rank %d: %s", plan.algorithm.c_str(),
                 std::string(name_of(plan.collective)).c_str(), plan.nranks, plan.rank, what);
  }

  const NodePlan& plan_of(Rank rank) const { return plans_[static_cast<size_t>(rank)]; }

  Cell cell(const Operand& operand, size_t tile, uint32_t piece) const {
    const bool user = operand.area == Area::Input || operand.area == Area::Output;
    const bool single = operand.area == Area::Partial || operand.area == Area::Result;
    Cell found{operand.area, operand.owner, user ? tile : (tiles_before_ + tile) % kNodeBanks,
               single ? 0 : static_cast<int64_t>(piece)};
    if (operand.area == Area::Input && plan_of(operand.owner).in_place) {
      found.area = Area::Output;
      found.piece += shift_of(plan_of(operand.owner));
    }
    return found;
  }

  // In place, where input piece 0 lies among the output's pieces.
  static int64_t shift_of(const NodePlan& plan) {
    const auto rank = static_cast<int64_t>(plan.rank);
    switch (plan.collective) {
      case Collective::AllGather:
      case Collective::Gather: return rank;
      case Collective::ReduceScatter:
      case Collective::Scatter: return -rank;
      default: return 0;
    }
  }

  // What a rank puts in at a position of the whole. Different per rank and piece; by parts, so that plans which cut
  // differently cannot be compared by mistake.
  static uint64_t contribution(Rank rank, size_t tile, uint32_t piece) {
    return mix(mix(static_cast<uint64_t>(rank) << 40 | tile << 20) + piece) % kPrime;
  }

  // A rank's buffers are its own until it says that it has come.
  void fill(const NodePlan& plan, size_t tile) {
    for (uint32_t piece = 0; piece < plan.output_units * plan.parts; ++piece) {
      cells_[cell({Area::Output, plan.rank}, tile, piece)].written = now(plan.rank);
    }
    for (uint32_t piece = 0; piece < plan.input_units * plan.parts; ++piece) {
      const uint64_t word = contribution(plan.rank, tile, piece);
      Content& content = cells_[cell({Area::Input, plan.rank}, tile, piece)];
      content.value = {word, mix(word), 0, false, true};
      content.written = now(plan.rank);
    }
  }

  Status run_slot(Rank rank, size_t slot, size_t tiles) {
    const NodePlan& plan = plan_of(rank);
    for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
      if (slot < phase || slot - phase >= tiles) continue;
      for (const NodeStep& step : plan.phases[phase].steps) CCOM_TRY(run_step(plan, step, slot - phase));
    }
    return {};
  }

  Status run_step(const NodePlan& plan, const NodeStep& step, size_t tile) {
    CCOM_TRY(check_step(plan, step));
    for (uint32_t i = 0; i < step.count; ++i) {
      Value value;
      for (size_t s = 0; s < step.sources.size(); ++s) {
        CCOM_TRY(load(plan, cell(step.sources[s], tile, step.source_piece + i), s, value));
      }
      if (step.sources.size() > 1) ++value.roundings;
      if (step.completes) {
        if (value.completed) return defect(plan, "a piece is completed twice");
        value.completed = true;
      }
      for (const Operand& target : step.targets) {
        CCOM_TRY(store(plan, cell(target, tile, step.target_piece + i), value));
      }
    }
    return {};
  }

  static Status check_step(const NodePlan& plan, const NodeStep& step) {
    if (step.sources.empty() || step.targets.empty()) return defect(plan, "a step without source or target");
    const uint32_t inputs = plan.input_units * plan.parts;
    const uint32_t outputs = plan.output_units * plan.parts;
    for (const Operand& source : step.sources) {
      if (source.owner < 0 || source.owner >= plan.nranks) return defect(plan, "a source of no rank");
      if (source.owner == plan.rank && source.area == Area::Input && step.source_piece + step.count > inputs)
        return defect(plan, "a step reads beyond its input");
    }
    for (const Operand& target : step.targets) {
      if (target.area == Area::Input) return defect(plan, "a step writes to an input");
      if (target.owner != plan.rank && target.area != Area::Output)
        return defect(plan, "a step writes to another rank's staging memory");
      if (target.owner == plan.rank && target.area == Area::Output && step.target_piece + step.count > outputs)
        return defect(plan, "a step writes beyond its output");
      const bool single = target.area == Area::Partial || target.area == Area::Result;
      if (single && step.count != 1) return defect(plan, "several pieces for a place that holds one");
    }
    return {};
  }

  bool happened_before(const Access& access, Rank rank) const {
    return access.rank < 0 || access.rank == rank ||
           access.meets < ranks_[static_cast<size_t>(rank)].knows[static_cast<size_t>(access.rank)];
  }
  Access now(Rank rank) const { return {rank, ranks_[static_cast<size_t>(rank)].knows[static_cast<size_t>(rank)]}; }

  Status load(const NodePlan& plan, const Cell& from, size_t index, Value& value) {
    Content& content = cells_[from];
    if (!content.value.defined) return defect(plan, "a step reads what nobody has written");
    if (!happened_before(content.written, plan.rank)) return defect(plan, "a load races with another rank's store");
    content.read.push_back(now(plan.rank));
    const Value& more = content.value;
    if (index == 0) {
      value = more;
      return {};
    }
    if (value.completed || more.completed) return defect(plan, "a complete piece is combined again");
    value.sum = add_mod(value.sum, more.sum);
    value.expression = mix(value.expression * 3 + mix(more.expression));
    value.roundings = std::max(value.roundings, more.roundings);
    return {};
  }

  Status store(const NodePlan& plan, const Cell& to, const Value& value) {
    Content& content = cells_[to];
    if (!happened_before(content.written, plan.rank)) return defect(plan, "two ranks' stores race");
    for (const Access& access : content.read) {
      if (!happened_before(access, plan.rank)) return defect(plan, "a store races with another rank's load");
    }
    content.value = value;
    content.value.defined = true;
    content.written = now(plan.rank);
    content.read.clear();
    return {};
  }

  // Everybody arrives, with what it knows; then each learns from those that it waits for.
  Status meet(size_t slot, size_t tiles) {
    const size_t bank = meets_++ % 2;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      bool is_silent = true;
      for_each_active(plans_[r], slot, tiles, [&](const NodePhase& phase) { is_silent &= phase.is_silent; });
      for (const Access& heard : is_silent ? std::vector<Access>() : ranks_[r].heard[bank]) {
        if (!happened_before(heard, static_cast<Rank>(r))) return defect(plans_[r], "a line is overwritten unheard");
      }
      if (!is_silent) ranks_[r].heard[bank].clear();
      silent_[r] = is_silent;
      ++ranks_[r].knows[r];
    }
    const std::vector<RankState> arrived = ranks_;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Status status;
      for_each_active(plans_[r], slot, tiles, [&](const NodePhase& phase) {
        for (const Rank other : phase.waits_for) {
          const auto q = static_cast<size_t>(other);
          if (silent_[q]) status = defect(plans_[r], "a rank waits for one that says nothing");
          learn(ranks_[r], arrived[q]);
          if (phase.is_full) ranks_[q].heard[bank].push_back(now(static_cast<Rank>(r)));
        }
      });
      CCOM_TRY(status);
    }
    return {};
  }

  template <typename Fn>
  static void for_each_active(const NodePlan& plan, size_t slot, size_t tiles, Fn fn) {
    for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
      if (slot >= phase && slot - phase < tiles) fn(plan.phases[phase]);
    }
  }
  static void learn(RankState& rank, const RankState& other) {
    for (size_t q = 0; q < rank.knows.size(); ++q) rank.knows[q] = std::max(rank.knows[q], other.knows[q]);
  }

  Status check_return() const {
    for (const auto& [where, content] : cells_) {
      if (where.area != Area::Input && where.area != Area::Output) continue;
      if (!happened_before(content.written, where.owner))
        return defect(plan_of(where.owner), "the rank returns while another may still write to its output");
      for (const Access& access : content.read) {
        if (!happened_before(access, where.owner))
          return defect(plan_of(where.owner), "the rank returns while another may still read its input");
      }
    }
    return {};
  }

  // The fingerprint that output piece `piece` of `rank` must have.
  uint64_t expected(const NodePlan& plan, size_t tile, uint32_t piece) const {
    const auto own = static_cast<uint32_t>(plan.rank);
    switch (plan.collective) {
      case Collective::AllGather:
      case Collective::Gather: return contribution(static_cast<Rank>(piece), tile, 0);
      case Collective::AllToAll: return contribution(static_cast<Rank>(piece), tile, own);
      case Collective::Broadcast: return contribution(plan.root, tile, piece);
      case Collective::Scatter: return contribution(plan.root, tile, own);
      default: break;
    }
    uint64_t sum = 0;
    const uint32_t at = plan.collective == Collective::ReduceScatter ? own : piece;
    for (Rank rank = 0; rank < plan.nranks; ++rank) sum = add_mod(sum, contribution(rank, tile, at));
    return sum;
  }

  Status check_results(size_t tiles) {
    std::map<std::pair<size_t, uint32_t>, uint64_t> expressions;
    for (const NodePlan& plan : plans_) {
      const bool sums = plan.collective == Collective::AllReduce || plan.collective == Collective::Reduce ||
                        plan.collective == Collective::ReduceScatter;
      for (size_t tile = 0; tile < tiles; ++tile) {
        for (uint32_t piece = 0; piece < plan.output_units * plan.parts; ++piece) {
          const Value& value = cells_[cell({Area::Output, plan.rank}, tile, piece)].value;
          if (!value.defined) return defect(plan, "an output piece is never written");
          if (value.sum != expected(plan, tile, piece)) return defect(plan, "an output piece is wrong");
          if (sums && !value.completed && plan.nranks > 1) return defect(plan, "a result is never completed");
          report_.max_roundings = std::max(report_.max_roundings, value.roundings);
          if (plan.collective != Collective::AllReduce) continue;
          const auto [known, is_new] = expressions.try_emplace({tile, piece}, value.expression);
          if (!is_new && known->second != value.expression) return defect(plan, "ranks compute different expressions");
        }
      }
    }
    return {};
  }

  std::vector<RankState> ranks_;
  std::span<const NodePlan> plans_;
  std::map<Cell, Content> cells_;
  std::vector<bool> silent_;
  size_t meets_ = 0;
  size_t tiles_before_ = 0;
  size_t calls_ = 0;
  NodeReport report_;
};

}  // namespace

Result<NodeReport> verify_node(std::span<const NodeCallPlans> calls) {
  if (calls.empty() || calls[0].plans.empty()) return error(Code::InvalidArgument, "no plans to verify");
  return NodeRun(calls[0].plans).run(calls);
}

}  // namespace ccom
