// SPDX-License-Identifier: Apache-2.0
//
// Larger calls: find out who can be reached, then run the plan for that, tile by tile.
#include <algorithm>
#include <cstring>

#include "node/geometry.h"
#include "node/shm_collectives.h"

namespace ccom {
namespace {

// Between two looks at the communicator's error.
constexpr size_t kStrideBytes = size_t{128} << 10;
constexpr size_t kMostPlans = 32;

}  // namespace

NodeShape ShmCollectives::shape_for(const NodeCall& call, std::span<const Reach> reach) const {
  return node_shape(config_.tuning,
                    {.collective = call.collective,
                     .bytes = call.count * size_of(call.type),
                     .rounds_once = is_narrow_float(call.type)},
                    reach);
}

NodePlan ShmCollectives::plan_for(const NodeCall& call, std::span<const Reach> reach) const {
  return node_plan(node_task(call.collective, size(), call.root), barrier_.place(), call.in_place,
                   shape_for(call, reach), reach);
}

const NodePlan& ShmCollectives::cached_plan(const NodeCall& call, const std::vector<Reach>& reach) {
  const NodeShape shape = shape_for(call, reach);
  const auto fits = [&](const CachedPlan& cached) {
    return cached.collective == call.collective && cached.root == call.root && cached.in_place == call.in_place &&
           cached.scheme == shape.scheme && cached.whole == shape.whole && cached.reach == reach;
  };
  const auto found = std::ranges::find_if(plans_, fits);
  if (found != plans_.end()) {
    std::rotate(plans_.begin(), found, found + 1);
  } else {
    if (plans_.size() == kMostPlans) plans_.pop_back();
    plans_.insert(plans_.begin(), {call.collective, call.root, call.in_place, shape.scheme, shape.whole, reach,
                                   std::make_unique<const NodePlan>(plan_for(call, reach))});
  }
  return *plans_.front().plan;
}

NodeGeometry ShmCollectives::geometry_of(const NodeCall& call, const NodePlan& plan) const {
  NodeGeometry geometry;
  geometry.element_bytes = size_of(call.type);
  geometry.unit_elements = call.count;
  geometry.unit_stride = call.unit_stride == 0 ? call.count : call.unit_stride;
  geometry.parts = plan.parts;
  geometry.tile_elements = call.count;
  if (!plan.staged || call.count == 0) return geometry;
  const size_t units = shown_bytes(call) / (call.count * geometry.element_bytes);
  geometry.slot_bytes = config_.layout.bank_bytes / units / geometry.element_bytes * geometry.element_bytes;
  // Tiles of equal length.
  const size_t most = geometry.slot_bytes / geometry.element_bytes;
  geometry.tiles = (call.count + most - 1) / most;
  geometry.tile_elements = std::min(
      most, NodeGeometry::part_elements(call.count, static_cast<uint32_t>(geometry.tiles), geometry.element_bytes));
  geometry.tiles = (call.count + geometry.tile_elements - 1) / geometry.tile_elements;
  return geometry;
}

// The first phase shows this rank's input to those who cannot reach it, before anybody knows who can: what it copies
// depends on nobody else.
Status ShmCollectives::run_large(const NodeCall& call) {
  call_ = call;
  const NodePlan& opening = cached_plan(call, nobody_);
  // Tiny calls come here for groups, whose meets not everybody waits in.
  const bool asks = shown_bytes(call) > config_.tuning.small_bytes;
  const Announcement mine = asks ? announce(call) : Announcement();
  std::memcpy(barrier_.payload(), &mine, sizeof mine);
  if (!mine.input.is_reached()) {
    geometry_ = geometry_of(call, opening);
    CCOM_TRY(reserve_staging());
    CCOM_TRY(run_phase(opening.phases[0], 0));
  }
  barrier_.arrive();
  if (mine.input.is_reached() || mine.output.is_reached()) {
    is_shown_ = true;
    first_meet_ = barrier_.number();
    last_meet_ = first_meet_ + 1;  // at least: nobody gets through it without this rank
  }
  CCOM_TRY(await(opening, 0, 1));
  if (asks) {
    CCOM_TRY(collect_reach(call, mine));
  } else {
    reach_ = nobody_;
  }
  const NodePlan& plan = cached_plan(call, reach_);
  geometry_ = geometry_of(call, plan);
  last_meet_ = barrier_.number() + static_cast<uint32_t>(tile_slots(plan, geometry_.tiles)) - 2;
  const bool in_cache = total_bytes(call) < config_.tuning.stream_bytes;
  const bool reads_outputs = std::ranges::find(is_pulled_, true) != is_pulled_.end();  // right after they are written
  const bool just_read = call.in_place && call.collective != Collective::AllGather;
  streams_ = !in_cache && !reads_outputs && !just_read;
  if (plan.staged) CCOM_TRY(reserve_staging());
  CCOM_TRY(run_tiles(plan));
  if (plan.staged) tiles_before_ += geometry_.tiles;
  return {};
}

// Input and output of all ranks.
size_t ShmCollectives::total_bytes(const NodeCall& call) const {
  return total_units(call.collective, size()) * call.count * size_of(call.type);
}

// Whether the kernel should copy this rank's input for others, instead of two copies through staging memory.
bool ShmCollectives::is_worth_reading(const NodeCall& call) const {
  const size_t bytes = shown_bytes(call);
  if (!reduces(call.collective) || is_per_rank(call.collective)) return bytes >= config_.tuning.read_bytes;
  return call.collective == Collective::AllReduce && bytes >= config_.tuning.pull_from_bytes &&
         bytes <= config_.tuning.pull_to_bytes;
}

// Where this rank's buffers are. An input that is overwritten while others read it is not shown where it lies.
Announcement ShmCollectives::announce(const NodeCall& call) const {
  Announcement mine;
  const auto where = [&](const void* buffer) {
    return is_worth_reading(call) ? reach_map_.describe_readable(buffer, shown_extent(call))
                                  : reach_map_.describe(buffer, shown_extent(call));
  };
  const bool is_root = call.root == barrier_.place();
  const bool is_overwritten = call.collective == Collective::AllToAll && call.in_place;
  if ((!only_root_reads(call.collective) || is_root) && !is_overwritten) {
    mine.input = where(call.input);
  }
  if (call.collective == Collective::AllReduce || (call.collective == Collective::Reduce && is_root)) {
    mine.output = where(call.output);
  }
  return mine;
}

Status ShmCollectives::collect_reach(const NodeCall& call, const Announcement& mine) {
  const size_t bytes = shown_extent(call);
  for (int place = 0; place < size(); ++place) {
    const auto i = static_cast<size_t>(place);
    Announcement said = mine;
    if (place != barrier_.place()) std::memcpy(&said, barrier_.payload_of(place), sizeof said);
    reach_[i] = {said.input.is_reached(), said.output.is_mapped()};
    is_pulled_[i] = said.output.kind == Announcement::kReadable && place != barrier_.place();
    is_remote_[i] = said.input.kind == Announcement::kReadable && place != barrier_.place();
    inputs_[i] = said.input.is_reached() ? reach_map_.resolve(place, said.input, bytes) : nullptr;
    outputs_[i] = said.output.is_reached() ? reach_map_.resolve(place, said.output, bytes) : nullptr;
    if ((inputs_[i] != nullptr) != said.input.is_reached() || (outputs_[i] != nullptr) != said.output.is_reached()) {
      return error(Code::InternalError, "rank %d says that its buffers lie outside of its arena",
                   barrier_.rank_at(place))
          .with_peers({barrier_.rank_at(place)});
    }
  }
  const bool anybody = std::ranges::any_of(reach_, [](const Reach& r) { return r.input || r.output; });
  if (anybody && barrier_.has_anybody_left()) return monitor_.status();
  return {};
}

// Everything but the first slot's work and meet, which the opening has done.
Status ShmCollectives::run_tiles(const NodePlan& plan) {
  const size_t slots = tile_slots(plan, geometry_.tiles);
  for (size_t slot = 1; slot < slots; ++slot) {
    for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
      if (slot < phase || slot - phase >= geometry_.tiles) continue;
      CCOM_TRY(run_phase(plan.phases[phase], slot - phase));
    }
    if (slot + 1 == slots) break;
    geometry_.tiles == 1 && plan.phases[slot].is_silent ? barrier_.arrive_silently() : barrier_.arrive();
    CCOM_TRY(await(plan, slot, geometry_.tiles));
  }
  return {};
}

Status ShmCollectives::await(const NodePlan& plan, size_t slot, size_t tiles) {
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
    if (slot < phase || slot - phase >= tiles) continue;
    if (plan.phases[phase].is_full) return barrier_.await_all();
    for (const Rank place : plan.phases[phase].waits_for) CCOM_TRY(barrier_.await(place));
  }
  return {};
}

Status ShmCollectives::run_phase(const NodePhase& phase, size_t tile) {
  for (const NodeStep& step : phase.steps) {
    if (geometry_.parts > 1 || step.count == 1) {
      CCOM_TRY(run_step(step, tile, step.source_piece, step.target_piece, step.count));
      continue;
    }
    for (uint32_t i = 0; i < step.count; ++i) {  // units lie apart
      CCOM_TRY(run_step(step, tile, step.source_piece + i, step.target_piece + i, 1));
    }
  }
  return {};
}

std::byte* ShmCollectives::address(const Operand& operand, size_t tile, uint32_t piece) const {
  const auto owner = static_cast<size_t>(operand.owner);
  const bool own = operand.owner == barrier_.place();
  const size_t bank = (tiles_before_ + tile) % kNodeBanks;
  std::byte* const block = region_ + config_.layout.block_offset(operand.owner);
  switch (operand.area) {
    case Area::Input:
      // Never written through.
      return (own ? const_cast<std::byte*>(call_.input) : inputs_[owner]) + geometry_.in_buffer(tile, piece);
    case Area::Output: return (own ? call_.output : outputs_[owner]) + geometry_.in_buffer(tile, piece);
    case Area::Stage: return block + config_.layout.stage_offset(bank) + geometry_.in_stage(tile, piece);
    case Area::Partial: return block + config_.layout.partial_offset(bank);
    default: return block + config_.layout.result_offset(bank);
  }
}

Status ShmCollectives::run_step(const NodeStep& step, size_t tile, uint32_t source_piece, uint32_t target_piece,
                           uint32_t count) {
  const bool from_single = step.sources[0].area == Area::Partial || step.sources[0].area == Area::Result;
  const size_t elements =
      from_single ? geometry_.elements(tile, target_piece, count) : geometry_.elements(tile, source_piece, count);
  targets_.clear();
  size_t streamed = 0;  // outputs come first in the list
  for (const Operand& target : step.targets) {
    targets_.push_back(address(target, tile, target_piece));
    streamed += streams_ && target.area == Area::Output ? 1 : 0;
  }
  const Reducer* const combine = step.sources.size() > 1 ? &reducer(call_, step.completes) : nullptr;
  const size_t first = geometry_.in_buffer(tile, source_piece) / geometry_.element_bytes;
  const size_t stride = kStrideBytes / geometry_.element_bytes;
  for (size_t done = 0; done < elements; done += stride) {
    if (done > 0 && monitor_.failed()) return monitor_.status();
    const size_t now = std::min(stride, elements - done);
    const size_t now_bytes = now * geometry_.element_bytes;
    const bool is_copied = combine == nullptr && !is_remote(step.sources[0]);
    CCOM_TRY(take_sources(step, tile, source_piece, done * geometry_.element_bytes, now_bytes));
    if (combine != nullptr) {
      (*combine)(sources_, targets_, now, streamed, first + done);
    } else if (is_copied && streamed > 0) {
      copy_streaming(targets_[0], sources_[0], now_bytes);
    } else if (is_copied && targets_[0] != sources_[0]) {
      std::memcpy(targets_[0], sources_[0], now_bytes);
    }
    for (std::byte*& target : targets_) target += now_bytes;
  }
  return {};
}

bool ShmCollectives::is_remote(const Operand& operand) const {
  const auto owner = static_cast<size_t>(operand.owner);
  return operand.area == Area::Input ? is_remote_[owner] : operand.area == Area::Output && is_pulled_[owner];
}

// Makes sources_ the addresses of a stretch of all sources. What only the kernel can read is read now: the one source
// of a copy to its target, others next to each other.
Status ShmCollectives::take_sources(const NodeStep& step, size_t tile, uint32_t piece, size_t offset, size_t size_bytes) {
  sources_.clear();
  for (const Operand& source : step.sources) {
    const std::byte* const from = address(source, tile, piece) + offset;
    if (!is_remote(source)) {
      sources_.push_back(from);
      continue;
    }
    std::byte* to = targets_[0];
    if (step.sources.size() > 1) {
      if (read_.empty()) read_.resize(kStrideBytes * nobody_.size());
      to = read_.data() + sources_.size() * kStrideBytes;
    }
    if (Status status = reach_map_.read(source.owner, from, to, size_bytes); !status.is_ok()) {
      return error(Code::RemoteError, "rank %d: %s", barrier_.rank_at(source.owner), status.message().c_str())
          .with_peers({barrier_.rank_at(source.owner)});
    }
    sources_.push_back(to);
  }
  return {};
}

}  // namespace ccom
