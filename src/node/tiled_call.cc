// SPDX-License-Identifier: Apache-2.0
#include "node/tiled_call.h"

#include <algorithm>
#include <cstring>

#include "base/time.h"
#include "node/lines.h"

namespace ccom {

Status TiledCall::run() {
  const int64_t begin_ns = room_.choices.is_timed() ? monotonic_ns() : 0;
  CCOM_TRY_ASSIGN(BoundNodePlan* const plan, open());
  const bool is_staged = plan->made().plan.staged;
  const size_t slots = tile_slots(plan->made().plan, plan->tiles());
  if (exposure_) exposure_->last_barrier = room_.barrier.number() + static_cast<uint32_t>(slots) - 2;
  if (is_staged) CCOM_TRY(room_.staging.reserve(call_.task->choice().has_scheme(NodeScheme::Domains)));
  for (size_t slot = 1; slot < slots; ++slot) {
    CCOM_TRY(run_slot(*plan, slot));
    if (slot + 1 < slots) CCOM_TRY(meet(*plan, slot));
  }
  if (is_staged) room_.staging.advance(plan->tiles());
  if (room_.choices.is_timed()) room_.choices.end(begin_ns, monotonic_ns());
  return {};
}

// The first slot up to its barrier. The first phase shows this rank's input to those who cannot reach it, before
// anybody knows who can: what it copies depends on nobody else. Then the plan for those who can.
Result<BoundNodePlan*> TiledCall::open() {
  FlagBarrier& barrier = room_.barrier;
  const bool asks = call_.task->choice().asks;
  buffers_.take_own(call_, barrier.local_rank());
  const auto [mine, mapped] =
      asks ? buffers_.announce(call_, room_.reach_map, barrier.local_rank()) : PeerBuffers::Own();
  const Opening said{mine, room_.choices.say(mapped)};
  std::memcpy(barrier.payload(), &said, sizeof said);
  BoundNodePlan& opening = bound_.opening(call_, room_.staging.layout());
  if (!mine.input.is_reached()) {
    CCOM_TRY(room_.staging.reserve(call_.task->choice().has_scheme(NodeScheme::Domains)));
    CCOM_TRY(run_phase(opening, 0, 0));
  }
  barrier.arrive();
  // At least one barrier more: nobody gets through it without this rank.
  if (mine.input.is_reached() || mine.output.is_reached()) {
    exposure_ = {barrier.number(), barrier.number() + 1};
    const NodeGeometry::Extent& output = buffers_.extent({Area::Output, barrier.local_rank()});
    if (mine.output.is_mapped()) exposure_->output = {call_.output + output.begin, output.size_bytes()};
  }
  CCOM_TRY(await(opening.made().plan.phases[0]));
  bool is_new = false;
  if (asks) {
    CCOM_TRY_ASSIGN(is_new, buffers_.collect(said, room_.reach_map, barrier));
    if (is_new || !room_.choices.has_heard(bound_.heard)) hear(said.said);
    if (buffers_.is_anybody_reached() && barrier.has_anybody_left()) return room_.monitor.status();
  } else if (buffers_.is_anybody_reached()) {
    buffers_.clear();
    bound_.heard = 0;
  }
  return bound_.plan(call_, is_new, room_.prove, room_.staging.layout());
}

void TiledCall::hear(const CallChoices::Said& own) {
  CallChoices::Heard heard;
  for (Rank local_rank = 0; local_rank < room_.barrier.size(); ++local_rank) {
    CallChoices::Said said = own;
    if (local_rank != room_.barrier.local_rank())
      std::memcpy(&said, room_.barrier.payload_of(local_rank) + offsetof(Opening, said), sizeof said);
    heard.add(said);
  }
  bound_.heard = heard.buffers();
  room_.choices.hear(heard);
}

// Of the phases that are at work in a slot, the first one and the one behind the last.
std::pair<size_t, size_t> TiledCall::phases_in(const BoundNodePlan& plan, size_t slot) {
  const size_t phases = plan.made().plan.phases.size(), tiles = plan.tiles();
  return {slot < tiles ? 0 : slot - tiles + 1, std::min(slot + 1, phases)};
}

Status TiledCall::run_slot(BoundNodePlan& plan, size_t slot) {
  const auto [first, end] = phases_in(plan, slot);
  for (size_t phase = first; phase < end; ++phase) CCOM_TRY(run_phase(plan, phase, slot - phase));
  return {};
}

Status TiledCall::meet(const BoundNodePlan& plan, size_t slot) {
  const std::vector<NodePhase>& phases = plan.made().plan.phases;
  const auto [first, end] = phases_in(plan, slot);
  bool is_silent = true;
  for (size_t phase = first; phase < end; ++phase) is_silent &= phases[phase].is_silent;
  is_silent ? room_.barrier.arrive_silently() : room_.barrier.arrive();
  for (size_t phase = first; phase < end; ++phase) {
    CCOM_TRY(await(phases[phase]));
    if (phases[phase].is_full) break;  // for everybody
  }
  return {};
}

Status TiledCall::await(const NodePhase& phase) {
  if (phase.is_full) return room_.barrier.await_all();
  for (const Rank local_rank : phase.waits_for) CCOM_TRY(room_.barrier.await(local_rank));
  return {};
}

Status TiledCall::run_phase(BoundNodePlan& plan, size_t phase, size_t tile) {
  for (const BoundNodeStep& step : plan.steps(call_, phase, tile)) CCOM_TRY(run_step(plan, step, tile));
  return {};
}

std::byte* TiledCall::address(const BoundNodePlan& plan, const BoundNodeOperand& at, size_t tile) const {
  if (!is_buffer(at.operand.area)) return room_.staging.address(at.operand, tile) + at.offset;
  return buffers_.begin(at.operand) + at.offset + tile * plan.tile_bytes();
}

Status TiledCall::run_step(const BoundNodePlan& plan, const BoundNodeStep& step, size_t tile) {
  const size_t element_bytes = call_.element_bytes();
  const std::span<std::byte*> targets(room_.targets.data(), step.targets.size());
  for (size_t i = 0; i < targets.size(); ++i) targets[i] = address(plan, step.targets[i], tile);
  const Reducer* const combine = step.combines ? &room_.reducers.get(call_, step.completes) : nullptr;
  const bool is_copied = !step.combines && !buffers_.is_remote(step.sources[0].operand);
  const size_t first = step.first_element + tile * plan.tile_elements();
  const std::span<const std::byte* const> sources(room_.sources.data(), step.sources.size());
  for (size_t done = 0; done < step.elements; done += step.stride) {
    if (done > 0 && room_.monitor.failed()) return room_.monitor.status();
    const size_t now = std::min(step.stride, step.elements - done);
    const size_t now_bytes = now * element_bytes;
    CCOM_TRY(take_sources(plan, step, tile, done * element_bytes, now_bytes));
    if (combine != nullptr) {
      (*combine)(sources, targets, now, step.streamed, first + done);
      CCOM_TRY(call_.operator_status());
    } else if (is_copied && step.streamed > 0) {
      copy_streaming(targets[0], sources[0], now_bytes);
    } else if (is_copied && targets[0] != sources[0]) {
      std::memcpy(targets[0], sources[0], now_bytes);
    }
    if (step.claims) claim_sources(step, now_bytes);
    for (std::byte*& target : targets) target += now_bytes;
  }
  return {};
}

// Stores to every line of what has just been read of other ranks' staging memory.
void TiledCall::claim_sources(const BoundNodeStep& step, size_t size_bytes) {
  for (size_t i = 0; i < step.sources.size(); ++i) {
    if (step.sources[i].is_claimed) claim_lines(const_cast<std::byte*>(room_.sources[i]), size_bytes);
  }
}

// Makes `sources` the addresses of a stretch of all sources. What only the kernel can read is read now: the one source
// of a step to its target, others next to each other.
Status TiledCall::take_sources(const BoundNodePlan& plan, const BoundNodeStep& step, size_t tile, size_t offset,
                               size_t size_bytes) {
  for (size_t i = 0; i < step.sources.size(); ++i) {
    const Operand& source = step.sources[i].operand;
    const std::byte* const from = address(plan, step.sources[i], tile) + offset;
    room_.sources[i] = from;
    if (!buffers_.is_remote(source)) [[likely]]
      continue;
    std::byte* to = room_.targets[0];
    if (step.sources.size() > 1) {
      if (room_.read.empty()) room_.read.resize(kStrideBytes * static_cast<size_t>(room_.barrier.size()));
      to = room_.read.data() + i * kStrideBytes;
    }
    if (Status status = room_.reach_map.read(source.owner, from, to, size_bytes); !status.is_ok()) {
      const Rank rank = room_.barrier.rank_of(source.owner);
      return error(Code::RemoteError, "rank %d: %s", rank, status.message().c_str()).with_peers({rank});
    }
    room_.sources[i] = to;
  }
  return {};
}

}  // namespace ccom
