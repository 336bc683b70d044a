// SPDX-License-Identifier: Apache-2.0
#include "node/bound_call.h"

#include <algorithm>

namespace ccom {
namespace {

// Lines are claimed before they leave the first cache, of which no processor has less than 32 KiB: two sources and a
// target fit.
constexpr size_t kClaimBytes = size_t{8} << 10;

}  // namespace

BoundNodePlan::BoundNodePlan(const NodeCall& call, std::shared_ptr<const MadePlan> made, const NodeLayout& layout,
                             bool streams)
    : made_(std::move(made)), layout_(layout), streams_(streams), rows_(made_->plan.phases.size()) {
  const NodeGeometry geometry(call, made_->plan, layout_);
  tiles_ = geometry.tiles();
  tile_elements_ = geometry.tile_elements();
  tile_bytes_ = tile_elements_ * call.element_bytes();
  find_rows(call);
}

// A tile differs from the one before if a unit ends there or has ended before.
void BoundNodePlan::find_rows(const NodeCall& call) {
  if (tiles_ == 1) return;
  const auto add_end = [&](size_t elements) {
    const size_t full = elements / tile_elements_;
    for (const size_t tile : {full, full + (elements % tile_elements_ == 0 ? 0 : 1)}) {
      if (tile > 0 && tile < tiles_) first_tiles_.push_back(tile);
    }
  };
  add_end(call.count);
  if (call.views != nullptr) std::ranges::for_each(call.views->block_elements, add_end);
  std::ranges::sort(first_tiles_);
  first_tiles_.erase(std::unique(first_tiles_.begin(), first_tiles_.end()), first_tiles_.end());
}

size_t BoundNodePlan::row_of(size_t tile) const {
  return static_cast<size_t>(std::ranges::upper_bound(first_tiles_, tile) - first_tiles_.begin()) - 1;
}

void BoundNodePlan::bind(const NodeCall& call, size_t number) {
  const NodeGeometry geometry(call, made_->plan, layout_);
  Row& row = rows_[number % rows_.size()];
  row.number = SIZE_MAX;
  row.begins.assign(1, 0);
  row.steps.clear();
  row.operands.clear();
  size_t operands = 0;
  for (const NodePhase& phase : made_->plan.phases) {
    for (const NodeStep& step : phase.steps) operands += step.count * (step.sources.size() + step.targets.size());
  }
  row.operands.reserve(operands);  // steps point to them
  for (const NodePhase& phase : made_->plan.phases) {
    for (const NodeStep& step : phase.steps) {
      if (geometry.parts() > 1 || step.count == 1) {
        bind_step(call, geometry, step, first_tiles_[number], row);
        continue;
      }
      NodeStep unit = step;  // units lie apart
      unit.count = 1;
      for (uint32_t i = 0; i < step.count; ++i, ++unit.source_piece, ++unit.target_piece)
        bind_step(call, geometry, unit, first_tiles_[number], row);
    }
    row.begins.push_back(static_cast<uint32_t>(row.steps.size()));
  }
  row.number = number;
}

int64_t BoundNodePlan::offset_of(const NodeGeometry& geometry, const Operand& operand, size_t tile,
                                 uint32_t piece) const {
  if (is_buffer(operand.area))
    return geometry.in_buffer(operand, tile, piece) - static_cast<int64_t>(tile * tile_bytes_);
  return operand.area == Area::Stage ? static_cast<int64_t>(geometry.in_stage(operand, tile, piece)) : 0;
}

bool BoundNodePlan::is_streamed(const NodeChoice& choice, const Operand& target) const {
  if (target.area == Area::Output) return streams_;
  return choice.streams_shared && !(choice.claims_lines && target.area == Area::Stage);
}

void BoundNodePlan::bind_step(const NodeCall& call, const NodeGeometry& geometry, const NodeStep& step, size_t tile,
                              Row& row) const {
  const NodeChoice& choice = call.task->choice();
  const Operand& source = step.sources[0];
  const bool from_single = source.area == Area::Partial || source.area == Area::Result;
  BoundNodeStep bound{.elements = from_single ? geometry.elements(step.targets[0], tile, step.target_piece, step.count)
                                              : geometry.elements(source, tile, step.source_piece, step.count),
                      .combines = step.sources.size() > 1 || step.completes,
                      .completes = step.completes};
  if (bound.elements == 0) return;
  const auto add = [&](const Operand& operand, uint32_t piece) {
    const bool is_claimed = choice.claims_lines && !is_buffer(operand.area) && operand.owner != made_->plan.rank;
    row.operands.push_back({operand, is_claimed, offset_of(geometry, operand, tile, piece)});
    return is_claimed;
  };
  const auto added_since = [&](size_t begin) { return std::span(row.operands).subspan(begin); };
  const size_t first = row.operands.size();
  for (const Operand& from : step.sources) bound.claims |= add(from, step.source_piece) && step.is_last_reader;
  bound.sources = added_since(first);
  for (const bool streams : {true, false}) {
    for (const Operand& target : step.targets) {
      if (is_streamed(choice, target) != streams) continue;
      add(target, step.target_piece);
      bound.streamed += streams ? 1 : 0;
    }
  }
  bound.targets = added_since(first + bound.sources.size());
  if (bound.combines) {
    const int64_t first_byte = geometry.in_buffer({Area::Input, source.owner}, tile, step.source_piece);
    bound.first_element = static_cast<size_t>(first_byte) / call.element_bytes() - tile * tile_elements_;
  }
  bound.stride = (bound.claims ? kClaimBytes : kStrideBytes) / call.element_bytes();
  row.steps.push_back(bound);
}

BoundNodePlan* BoundCall::find(const NodeCall& call, std::span<const Reach> reach, bool streams) {
  for (const std::unique_ptr<BoundNodePlan>& plan : plans_) {
    if (is_of(*plan, call) && plan->streams() == streams && std::ranges::equal(plan->made().reach, reach))
      return plan.get();
  }
  return nullptr;
}

BoundNodePlan& BoundCall::add(const NodeCall& call, std::shared_ptr<const MadePlan> made, const NodeLayout& layout,
                              bool streams) {
  if (plans_.size() == kMostPlans) {
    plans_.pop_back();
    opening_ = plan_ = nullptr;
  }
  plans_.insert(plans_.begin(), std::make_unique<BoundNodePlan>(call, std::move(made), layout, streams));
  return *plans_.front();
}

BoundNodePlan& BoundCall::find_opening(const NodeCall& call, const NodeLayout& layout) {
  if (BoundNodePlan* const known = find(call, call.task->nobody(), false)) return *known;
  return add(call, call.task->opening(call.in_place), layout, false);
}

Result<BoundNodePlan*> BoundCall::find_plan(const NodeCall& call, const PreparedTask::Prove& prove,
                                            const NodeLayout& layout) {
  const std::span<const Reach> reach = buffers_->reach();
  // Lines that were just read, or that others read next, are better kept.
  const bool just_read = call.in_place && call.task->task().collective != Collective::AllGather;
  const bool streams = call.task->choice().streams && !just_read && !buffers_->is_any_output_remote();
  BoundNodePlan* known = find(call, reach, streams);
  if (known == nullptr || !known->made().is_proved) {
    CCOM_TRY_ASSIGN(std::shared_ptr<const MadePlan> made, call.task->plan(call.in_place, reach, prove));
    if (known == nullptr) known = &add(call, std::move(made), layout, streams);
  }
  return plan_ = known;
}

}  // namespace ccom
