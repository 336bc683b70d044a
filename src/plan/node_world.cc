// SPDX-License-Identifier: Apache-2.0
#include "plan/node_world.h"

#include <algorithm>

namespace ccom {
namespace {

Status defect(const NodePlan& plan, const std::string& what) {
  return error(Code::InternalError, "%s, %s of %d ranks, rank %d: %s", plan.algorithm.c_str(),
               std::string(name_of(plan.collective)).c_str(), plan.nranks, plan.rank, what.c_str());
}

bool holds_one_piece(Area area) { return area == Area::Partial || area == Area::Result; }

}  // namespace

Result<UnitValues> NodeWorld::run(const Call& call, const UnitValues& inputs) {
  call_ = &call;
  CCOM_TRY(check_call());
  for (const NodePlan& plan : call.plans) fill(plan, inputs);
  const size_t slots = tile_slots(call.plans[0], call.tiles);
  for (size_t slot = 0; slot < slots; ++slot) {
    // Between two barriers ranks run in any order: races are found by clocks, values need one legal order. Backwards
    // and forwards in turn, so that a plan which leans on one order is found by its values too.
    for (size_t i = 0; i < ranks_.size(); ++i) {
      CCOM_TRY(run_slot(static_cast<Rank>(slot % 2 == 0 ? i : ranks_.size() - 1 - i), slot));
    }
    if (slot + 1 < slots) CCOM_TRY(barrier(slot));
  }
  CCOM_TRY(check_return());
  CCOM_TRY_ASSIGN(UnitValues outputs, collect());
  barriers_of_call_ = slots - 1;
  if (call.plans[0].staged) tiles_before_ += call.tiles;
  std::erase_if(cells_, [](const auto& entry) { return is_buffer(entry.first.area); });
  return outputs;
}

Status NodeWorld::check_call() const {
  const std::span<const NodePlan> plans = call_->plans;
  for (const NodePlan& plan : plans) {
    const auto rank = static_cast<size_t>(plan.rank);
    if (plan.nranks != static_cast<int>(ranks_.size()) || plan.phases.size() != plans[0].phases.size() ||
        plan.staged != plans[0].staged || plan.parts == 0)
      return defect(plan, "ranks meet unequally often, or differ in whether they stage");
    if (plan.input_units > call_->task.blocks.gives[rank].size() ||
        plan.output_units != call_->task.blocks.gets[rank].size())
      return defect(plan, "its buffers are not those of the call");
    if (!plan.phases.back().waits_for.empty()) return defect(plan, "the last phase waits");
    for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
      const bool all = plan.phases[phase].waits_for.size() + 1 == plans.size();
      if (plan.phases[phase].is_full != plans[0].phases[phase].is_full || (plan.phases[phase].is_full && !all))
        return defect(plan, "a full barrier that not everybody waits in");
    }
  }
  return {};
}

NodeWorld::Cell NodeWorld::cell(const Operand& operand, size_t tile, uint32_t piece) const {
  const NodePlan& owner = plan_of(operand.owner);
  Cell found{operand.area, operand.owner, is_buffer(operand.area) ? tile : (tiles_before_ + tile) % kNodeBanks,
             holds_one_piece(operand.area) ? 0 : static_cast<int64_t>(piece)};
  if (operand.area == Area::Input && owner.in_place && piece / owner.parts < owner.input_units) {
    const int64_t unit = output_unit_of(call_->task, operand.owner, piece / owner.parts);
    if (unit < 0) return found;
    found.area = Area::Output;
    found.piece = unit * owner.parts + piece % owner.parts;
  }
  return found;
}

// Which data it is, and how it was cut: pieces of plans that cut differently are never taken for one another.
uint64_t NodeWorld::origin(const NodePlan& plan, uint32_t block, size_t tile, uint32_t part) const {
  return mix(uint64_t{block} << 32 ^ tile) ^ mix(uint64_t{part} << 32 ^ plan.parts);
}

// A rank's buffers are its own until it has arrived.
void NodeWorld::fill(const NodePlan& plan, const UnitValues& inputs) {
  const auto rank = static_cast<size_t>(plan.rank);
  for (size_t tile = 0; tile < call_->tiles; ++tile) {
    for (uint32_t piece = 0; piece < plan.output_units * plan.parts; ++piece) {
      cells_[cell({Area::Output, plan.rank}, tile, piece)].written = now(plan.rank);
    }
    for (uint32_t piece = 0; piece < plan.input_units * plan.parts; ++piece) {
      const uint32_t unit = piece / plan.parts;
      Content& content = cells_[cell({Area::Input, plan.rank}, tile, piece)];
      content.value = inputs[rank][unit];
      content.written = now(plan.rank);
      if (!content.value) continue;
      content.value->origin = origin(plan, call_->task.blocks.gives[rank][unit], tile, piece % plan.parts);
    }
  }
}

Status NodeWorld::run_slot(Rank rank, size_t slot) {
  const NodePlan& plan = plan_of(rank);
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
    if (slot < phase || slot - phase >= call_->tiles) continue;
    for (const NodeStep& step : plan.phases[phase].steps) CCOM_TRY(run_step(plan, step, slot - phase));
  }
  return {};
}

Status NodeWorld::run_step(const NodePlan& plan, const NodeStep& step, size_t tile) {
  CCOM_TRY(check_step(plan, step));
  for (uint32_t i = 0; i < step.count; ++i) {
    Value value;
    for (size_t s = 0; s < step.sources.size(); ++s) {
      CCOM_TRY(load(plan, cell(step.sources[s], tile, step.source_piece + i), s, value));
    }
    if (step.is_last_reader) CCOM_TRY(spoil(plan, step, tile, step.source_piece + i));
    if (step.sources.size() > 1) round_once(value, step.sources.size());
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

Status NodeWorld::check_step(const NodePlan& plan, const NodeStep& step) {
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
    if (holds_one_piece(target.area) && step.count != 1)
      return defect(plan, "several pieces for a place that holds one");
  }
  return {};
}

bool NodeWorld::happened_before(const Access& access, Rank rank) const {
  return access.rank < 0 || access.rank == rank ||
         access.barriers < ranks_[static_cast<size_t>(rank)].knows[static_cast<size_t>(access.rank)];
}

NodeWorld::Access NodeWorld::now(Rank rank) const {
  return {rank, ranks_[static_cast<size_t>(rank)].knows[static_cast<size_t>(rank)]};
}

Status NodeWorld::load(const NodePlan& plan, const Cell& from, size_t index, Value& value) {
  Content& content = cells_[from];
  if (!content.value) return defect(plan, "a step reads what nobody has written");
  if (!happened_before(content.written, plan.rank)) return defect(plan, "a load races with another rank's store");
  content.read.push_back(now(plan.rank));
  if (index == 0) {
    value = *content.value;
    return {};
  }
  if (value.completed || content.value->completed) return defect(plan, "a complete piece is combined again");
  if (value.origin != content.value->origin) return defect(plan, "two different pieces of data are combined");
  value = combine(value, *content.value);
  return {};
}

Status NodeWorld::store(const NodePlan& plan, const Cell& to, const Value& value) {
  Content& content = cells_[to];
  if (!happened_before(content.written, plan.rank)) return defect(plan, "two ranks' stores race");
  for (const Access& access : content.read) {
    if (!happened_before(access, plan.rank)) return defect(plan, "a store races with another rank's load");
  }
  content.value = value;
  content.written = now(plan.rank);
  content.read.clear();
  return {};
}

// What a last reader has read of other ranks' staging memory is no longer there.
Status NodeWorld::spoil(const NodePlan& plan, const NodeStep& step, size_t tile, uint32_t piece) {
  for (const Operand& source : step.sources) {
    if (is_buffer(source.area) || source.owner == plan.rank) continue;
    const Cell from = cell(source, tile, piece);
    CCOM_TRY(store(plan, from, Value()));
    cells_[from].value.reset();
  }
  return {};
}

template <typename Fn>
void NodeWorld::for_each_active(const NodePlan& plan, size_t slot, Fn fn) const {
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
    if (slot >= phase && slot - phase < call_->tiles) fn(plan.phases[phase]);
  }
}

// Everybody arrives, with what it knows; then each learns from those that it waits for.
Status NodeWorld::barrier(size_t slot) {
  const size_t bank = barriers_++ % 2;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    bool is_silent = true;
    for_each_active(call_->plans[r], slot, [&](const NodePhase& phase) { is_silent &= phase.is_silent; });
    for (const Access& heard : is_silent ? std::vector<Access>() : ranks_[r].heard[bank]) {
      if (!happened_before(heard, static_cast<Rank>(r)))
        return defect(call_->plans[r], "a line is overwritten before all have read it");
    }
    if (!is_silent) ranks_[r].heard[bank].clear();
    silent_[r] = is_silent;
    ++ranks_[r].knows[r];
  }
  const std::vector<RankState> arrived = ranks_;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Status status;
    for_each_active(call_->plans[r], slot, [&](const NodePhase& phase) {
      for (const Rank other : phase.waits_for) {
        const auto q = static_cast<size_t>(other);
        if (silent_[q]) status = defect(call_->plans[r], "a rank waits for one that does not announce its arrival");
        learn(ranks_[r], arrived[q]);
        if (phase.is_full) ranks_[q].heard[bank].push_back(now(static_cast<Rank>(r)));
      }
    });
    CCOM_TRY(status);
  }
  return {};
}

void NodeWorld::learn(RankState& rank, const RankState& other) {
  for (size_t q = 0; q < rank.knows.size(); ++q) rank.knows[q] = std::max(rank.knows[q], other.knows[q]);
}

Status NodeWorld::check_return() const {
  for (const auto& [where, content] : cells_) {
    if (!is_buffer(where.area)) continue;
    if (!happened_before(content.written, where.owner))
      return defect(plan_of(where.owner), "the rank returns while another may still write to its output");
    for (const Access& access : content.read) {
      if (!happened_before(access, where.owner))
        return defect(plan_of(where.owner), "the rank returns while another may still read its input");
    }
  }
  return {};
}

// The units of all outputs, each put together from its pieces in all tiles.
Result<UnitValues> NodeWorld::collect() {
  UnitValues outputs(ranks_.size());
  for (const NodePlan& plan : call_->plans) {
    const std::vector<uint32_t>& blocks = call_->task.blocks.gets[static_cast<size_t>(plan.rank)];
    for (uint32_t unit = 0; unit < plan.output_units; ++unit) {
      std::vector<Value> pieces;
      for (size_t tile = 0; tile < call_->tiles; ++tile) {
        for (uint32_t part = 0; part < plan.parts; ++part) {
          const Content& content = cells_[cell({Area::Output, plan.rank}, tile, unit * plan.parts + part)];
          const std::string where = "block " + std::to_string(blocks[unit]) + " of its output";
          if (!content.value) return defect(plan, where + " is never written");
          if (content.value->origin != origin(plan, blocks[unit], tile, part))
            return defect(plan, where + " holds other data");
          pieces.push_back(*content.value);
        }
      }
      bool is_whole = true;
      outputs[static_cast<size_t>(plan.rank)].emplace_back(whole_of(pieces, is_whole));
      if (!is_whole) return defect(plan, "the pieces of an output block hold different contributions");
    }
  }
  return outputs;
}

}  // namespace ccom
