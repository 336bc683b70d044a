// SPDX-License-Identifier: Apache-2.0
#include "node/tiled_call.h"

#include <algorithm>
#include <cstring>

#include "base/time.h"
#include "node/lines.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

// Between two looks at the communicator's error.
constexpr size_t kStrideBytes = size_t{128} << 10;
// Lines are claimed before they leave the first cache, of which no processor has less than 32 KiB: two sources and a
// target fit.
constexpr size_t kClaimBytes = size_t{8} << 10;

}  // namespace

Status TiledCall::run() {
  const int64_t begin_ns = room_.choices.is_timed() ? monotonic_ns() : 0;
  CCOM_TRY(open());
  CCOM_TRY_ASSIGN(const NodePlan* const plan, call_.task->plan(call_.in_place, room_.buffers.reach(), room_.prove));
  if (!geometry_ || !geometry_->serves(*plan)) geometry_.emplace(call_, *plan, room_.staging.layout());
  if (exposure_)
    exposure_->last_barrier = room_.barrier.number() + static_cast<uint32_t>(tile_slots(*plan, geometry_->tiles())) - 2;
  // Lines that were just read, or that others read next, are better kept.
  const bool just_read = call_.in_place && call_.task->task().collective != Collective::AllGather;
  streams_ = call_.task->choice().streams && !just_read && !room_.buffers.is_any_output_remote();
  if (plan->staged) CCOM_TRY(room_.staging.reserve(call_.task->choice().has_scheme(NodeScheme::Domains)));
  CCOM_TRY(run_tiles(*plan));
  if (plan->staged) room_.staging.advance(geometry_->tiles());
  if (room_.choices.is_timed()) room_.choices.end(begin_ns, monotonic_ns());
  return {};
}

// The first slot up to its barrier. The first phase shows this rank's input to those who cannot reach it, before
// anybody knows who can: what it copies depends on nobody else.
Status TiledCall::open() {
  FlagBarrier& barrier = room_.barrier;
  const bool asks = call_.task->choice().asks;
  const NodePlan& opening = call_.task->opening(call_.in_place);
  room_.buffers.clear(call_, barrier.local_rank());
  const auto [mine, mapped] =
      asks ? PeerBuffers::announce(call_, room_.reach_map, barrier.local_rank()) : PeerBuffers::Own();
  std::memcpy(barrier.payload(), &mine, sizeof mine);
  const CallChoices::Said said = room_.choices.say(mapped);
  std::memcpy(barrier.payload() + sizeof mine, &said, sizeof said);
  if (!mine.input.is_reached()) {
    geometry_.emplace(call_, opening, room_.staging.layout());
    CCOM_TRY(room_.staging.reserve(call_.task->choice().has_scheme(NodeScheme::Domains)));
    CCOM_TRY(run_phase(opening.phases[0], 0));
  }
  barrier.arrive();
  // At least one barrier more: nobody gets through it without this rank.
  if (mine.input.is_reached() || mine.output.is_reached()) {
    exposure_ = {barrier.number(), barrier.number() + 1};
    const NodeGeometry::Extent output = NodeGeometry::extent(call_, {Area::Output, barrier.local_rank()});
    if (mine.output.is_mapped()) exposure_->output = {call_.output + output.begin, output.size_bytes()};
  }
  CCOM_TRY(await(opening, 0, 1));
  if (!asks) return {};
  hear(said);
  CCOM_TRY(room_.buffers.collect(call_, mine, room_.reach_map, barrier));
  if (room_.buffers.is_anybody_reached() && barrier.has_anybody_left()) return room_.monitor.status();
  return {};
}

void TiledCall::hear(const CallChoices::Said& own) {
  CallChoices::Heard heard;
  for (Rank local_rank = 0; local_rank < room_.barrier.size(); ++local_rank) {
    CallChoices::Said said = own;
    if (local_rank != room_.barrier.local_rank())
      std::memcpy(&said, room_.barrier.payload_of(local_rank) + sizeof(Announcement), sizeof said);
    heard.add(said);
  }
  room_.choices.hear(heard);
}

// Everything but the first slot's work and barrier.
Status TiledCall::run_tiles(const NodePlan& plan) {
  const size_t tiles = geometry_->tiles(), slots = tile_slots(plan, tiles);
  for (size_t slot = 1; slot < slots; ++slot) {
    bool is_silent = true;
    for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
      if (slot < phase || slot - phase >= tiles) continue;
      CCOM_TRY(run_phase(plan.phases[phase], slot - phase));
      is_silent &= plan.phases[phase].is_silent;
    }
    if (slot + 1 == slots) break;
    is_silent ? room_.barrier.arrive_silently() : room_.barrier.arrive();
    CCOM_TRY(await(plan, slot, tiles));
  }
  return {};
}

Status TiledCall::await(const NodePlan& plan, size_t slot, size_t tiles) {
  for (size_t phase = 0; phase < plan.phases.size(); ++phase) {
    if (slot < phase || slot - phase >= tiles) continue;
    if (plan.phases[phase].is_full) return room_.barrier.await_all();
    for (const Rank local_rank : plan.phases[phase].waits_for) CCOM_TRY(room_.barrier.await(local_rank));
  }
  return {};
}

Status TiledCall::run_phase(const NodePhase& phase, size_t tile) {
  for (const NodeStep& step : phase.steps) {
    if (geometry_->parts() > 1 || step.count == 1) {
      CCOM_TRY(run_step(step, tile, step.source_piece, step.target_piece, step.count));
      continue;
    }
    for (uint32_t i = 0; i < step.count; ++i) {  // units lie apart
      CCOM_TRY(run_step(step, tile, step.source_piece + i, step.target_piece + i, 1));
    }
  }
  return {};
}

std::byte* TiledCall::address(const Operand& operand, size_t tile, uint32_t piece) const {
  switch (operand.area) {
    case Area::Input:
    case Area::Output: return room_.buffers.begin(operand) + geometry_->in_buffer(operand, tile, piece);
    case Area::Stage: return room_.staging.address(operand, tile) + geometry_->in_stage(operand, tile, piece);
    default: return room_.staging.address(operand, tile);
  }
}

bool TiledCall::is_streamed(const Operand& target) const {
  const NodeChoice& choice = call_.task->choice();
  if (target.area == Area::Output) return streams_;
  return choice.streams_shared && !(choice.claims_lines && target.area == Area::Stage);
}

Status TiledCall::run_step(const NodeStep& step, size_t tile, uint32_t source_piece, uint32_t target_piece,
                           uint32_t count) {
  const Operand& source = step.sources[0];
  const bool from_single = source.area == Area::Partial || source.area == Area::Result;
  const size_t elements = from_single ? geometry_->elements(step.targets[0], tile, target_piece, count)
                                      : geometry_->elements(source, tile, source_piece, count);
  std::vector<std::byte*>& targets = room_.targets;
  targets.clear();
  size_t streamed = 0;
  for (const bool streams : {true, false}) {  // reducers want those first
    for (const Operand& target : step.targets) {
      if (is_streamed(target) == streams) targets.push_back(address(target, tile, target_piece));
    }
    if (streams) streamed = targets.size();
  }
  const bool claims = step.is_last_reader && call_.task->choice().claims_lines &&
                      std::ranges::any_of(step.sources, [this](const Operand& from) { return is_claimed(from); });
  const size_t element_bytes = call_.element_bytes();
  const bool combines = step.sources.size() > 1 || step.completes;
  const Reducer* const combine = combines ? &room_.reducers.get(call_, step.completes) : nullptr;
  const bool is_copied = !combines && !room_.buffers.is_remote(source);
  const int64_t first_byte = combines ? geometry_->in_buffer({Area::Input, source.owner}, tile, source_piece) : 0;
  const auto first = static_cast<size_t>(first_byte) / element_bytes;
  const size_t stride = (claims ? kClaimBytes : kStrideBytes) / element_bytes;
  for (size_t done = 0; done < elements; done += stride) {
    if (done > 0 && room_.monitor.failed()) return room_.monitor.status();
    const size_t now = std::min(stride, elements - done);
    const size_t now_bytes = now * element_bytes;
    CCOM_TRY(take_sources(step, tile, source_piece, done * element_bytes, now_bytes));
    if (combines) {
      (*combine)(room_.sources, targets, now, streamed, first + done);
      CCOM_TRY(call_.operator_status());
    } else if (is_copied && streamed > 0) {
      copy_streaming(targets[0], room_.sources[0], now_bytes);
    } else if (is_copied && targets[0] != room_.sources[0]) {
      std::memcpy(targets[0], room_.sources[0], now_bytes);
    }
    if (claims) claim_sources(step, now_bytes);
    for (std::byte*& target : targets) target += now_bytes;
  }
  return {};
}

// Other ranks' staging memory.
bool TiledCall::is_claimed(const Operand& source) const {
  return source.owner != room_.barrier.local_rank() && source.area != Area::Input && source.area != Area::Output;
}

// Stores to every line of what has just been read of it.
void TiledCall::claim_sources(const NodeStep& step, size_t size_bytes) {
  for (size_t i = 0; i < step.sources.size(); ++i) {
    if (is_claimed(step.sources[i])) claim_lines(const_cast<std::byte*>(room_.sources[i]), size_bytes);
  }
}

// Makes `sources` the addresses of a stretch of all sources. What only the kernel can read is read now: the one source
// of a step to its target, others next to each other.
Status TiledCall::take_sources(const NodeStep& step, size_t tile, uint32_t piece, size_t offset, size_t size_bytes) {
  room_.sources.clear();
  for (const Operand& source : step.sources) {
    const std::byte* const from = address(source, tile, piece) + offset;
    if (!room_.buffers.is_remote(source)) {
      room_.sources.push_back(from);
      continue;
    }
    std::byte* to = room_.targets[0];
    if (step.sources.size() > 1) {
      if (room_.read.empty()) room_.read.resize(kStrideBytes * static_cast<size_t>(room_.barrier.size()));
      to = room_.read.data() + room_.sources.size() * kStrideBytes;
    }
    if (Status status = room_.reach_map.read(source.owner, from, to, size_bytes); !status.is_ok()) {
      const Rank rank = room_.barrier.rank_of(source.owner);
      return error(Code::RemoteError, "rank %d: %s", rank, status.message().c_str()).with_peers({rank});
    }
    room_.sources.push_back(to);
  }
  return {};
}

}  // namespace ccom
