// SPDX-License-Identifier: Apache-2.0
//
// Small calls, and what all calls share. Larger ones: shm_tiles.cc.
#include "node/shm_collectives.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "node/geometry.h"

namespace ccom {
namespace {

constexpr int kFewRanks = 32;  // whose addresses fit on the stack, which is in the cache

}  // namespace

ShmCollectives::ShmCollectives(NodeConfig config, Monitor& monitor, FlagBarrier::Describe describe, Fail fail)
    : config_(std::move(config)),
      monitor_(monitor),
      region_(config_.segment->bytes().data() + config_.region_offset),
      barrier_(config_.barrier, region_, config_.layout, monitor, std::move(describe)),
      reach_map_(config_.mates, config_.arena, config_.means),
      fail_(std::move(fail)),
      nobody_(config_.barrier.ranks.size()),
      reach_(nobody_),
      inputs_(nobody_.size()),
      outputs_(nobody_.size()),
      is_remote_(nobody_.size()),
      is_pulled_(nobody_.size()) {
  sources_.reserve(nobody_.size());
  targets_.reserve(nobody_.size() + 1);
}

Status ShmCollectives::open() {
  const size_t offset = config_.region_offset + config_.layout.block_offset(barrier_.place());
  if (barrier_.place() == 0) {
    CCOM_TRY(config_.segment->reserve(config_.region_offset, config_.layout.lines_bytes()));
    memory_bytes_ += config_.layout.lines_bytes();
  }
  CCOM_TRY(config_.segment->reserve(offset, config_.layout.mail_bytes()));
  memory_bytes_ += config_.layout.mail_bytes();
  return {};
}

Status ShmCollectives::reserve_staging() {
  if (has_staging_) return {};
  const size_t begin = config_.region_offset + config_.layout.block_offset(barrier_.place());
  const size_t size = config_.layout.staging_bytes() -
                      (config_.tuning.domains.empty() ? kNodeBanks * config_.layout.result_bytes() : 0);
  CCOM_TRY(config_.segment->reserve(begin + config_.layout.stage_offset(0), size));
  memory_bytes_ += size;
  has_staging_ = true;
  return {};
}

Status ShmCollectives::run(const NodeCall& call, const CallWords& words, std::chrono::milliseconds timeout) {
  if (monitor_.failed()) [[unlikely]]
    return give_up(monitor_.status());
  barrier_.begin(words, timeout);
  is_shown_ = false;
  const size_t shown = shown_bytes(call);
  const bool is_whole = call.unit_stride == 0 || call.unit_stride == call.count;
  const bool is_small = shown <= config_.tuning.small_bytes && config_.tuning.groups.empty() && is_whole;
  Status status = is_small ? run_small(call, shown) : run_large(call);
  if (!status.is_ok()) [[unlikely]]
    return give_up(status);
  return status;
}

Status ShmCollectives::give_up(const Status& cause) {
  const Status in_force = fail_(cause);
  barrier_.say_left();
  if (is_shown_ && !barrier_.await_leavers(first_meet_, last_meet_)) {
    log(LogLevel::Error,
        "rank %d: a peer has not answered for a second and may still write to a buffer of the failed call",
        barrier_.rank_at(barrier_.place()));
  }
  return in_force;
}

// Of a rank's memory that others read, the same on all ranks.
size_t ShmCollectives::shown_bytes(const NodeCall& call) const {
  return input_units(call.collective, size(), true) * call.count * size_of(call.type);
}

// From the first to the last of these bytes.
size_t ShmCollectives::shown_extent(const NodeCall& call) const {
  const size_t unit = call.count * size_of(call.type);
  const size_t units = unit == 0 ? 0 : shown_bytes(call) / unit;
  if (call.unit_stride == 0 || units == 0) return units * unit;
  return (units - 1) * call.unit_stride * size_of(call.type) + unit;
}

// ---- Small calls ----------------------------------------------------------------------------------------------------

const std::byte* ShmCollectives::shown_by(int place, size_t shown) const {
  return shown <= kLinePayloadBytes ? barrier_.payload_of(place) : barrier_.mail_of(place);
}

Status ShmCollectives::run_small(const NodeCall& call, size_t shown) {
  show(call, shown);
  barrier_.arrive();
  CCOM_TRY(barrier_.await_all());
  combine_shown(call, shown);
  return {};
}

namespace {

// A copy whose length the compiler does not know is a call; tiny ones need none.
void copy_small(std::byte* to, const std::byte* from, size_t size_bytes) {
  if (size_bytes == sizeof(uint64_t)) {
    std::memcpy(to, from, sizeof(uint64_t));
  } else if (size_bytes == sizeof(uint32_t)) {
    std::memcpy(to, from, sizeof(uint32_t));
  } else {
    std::memcpy(to, from, size_bytes);
  }
}

}  // namespace

void ShmCollectives::show(const NodeCall& call, size_t shown) {
  if (shown == 0) return;
  if (only_root_reads(call.collective) && call.root != barrier_.place()) return;
  copy_small(shown <= kLinePayloadBytes ? barrier_.payload() : barrier_.mail(), call.input, shown);
}

// What the plans one_shot and direct do after their meet.
void ShmCollectives::combine_shown(const NodeCall& call, size_t shown) {
  if (shown == 0) return;
  const size_t unit = call.count * size_of(call.type);
  const auto self = static_cast<size_t>(barrier_.place());
  const bool is_root = call.root == barrier_.place();
  const auto sum = [&](size_t offset) {  // of the first element, in bytes
    std::array<const std::byte*, kFewRanks> few;
    sources_.resize(size() > kFewRanks ? static_cast<size_t>(size()) : 0);
    const std::span<const std::byte*> sources =
        size() > kFewRanks ? std::span(sources_) : std::span(few).first(static_cast<size_t>(size()));
    for (int place = 0; place < size(); ++place) {
      const std::byte* const from = place == barrier_.place() ? call.input : shown_by(place, shown);
      sources[static_cast<size_t>(place)] = from + offset;
    }
    reducer(call, true)(sources, {&call.output, 1}, call.count, 0, offset / size_of(call.type));
  };
  const auto gather = [&](size_t offset) {
    for (int place = 0; place < size(); ++place) {
      std::byte* const to = call.output + static_cast<size_t>(place) * unit;
      if (place != barrier_.place()) {
        copy_small(to, shown_by(place, shown) + offset, unit);
      } else if (!call.in_place) {
        copy_small(to, call.input + offset, unit);
      }
    }
  };
  const auto take = [&](size_t offset) {
    if (!is_root) {
      copy_small(call.output, shown_by(call.root, shown) + offset, unit);
    } else if (!call.in_place) {
      copy_small(call.output, call.input + offset, unit);
    }
  };
  switch (call.collective) {
    case Collective::AllReduce: return sum(0);
    case Collective::ReduceScatter: return sum(self * unit);
    case Collective::Reduce: return is_root ? sum(0) : void();
    case Collective::AllGather: return gather(0);
    case Collective::Gather: return is_root ? gather(0) : void();
    case Collective::AllToAll: return gather(self * unit);
    case Collective::Broadcast: return take(0);
    case Collective::Scatter: return take(self * unit);
    default: return;
  }
}

const Reducer& ShmCollectives::reducer(const NodeCall& call, bool completes) {
  const auto divide_by = call.op == ReduceOp::Avg && completes ? static_cast<uint32_t>(size()) : 0;
  const Reduction wanted{call.type, call.op, divide_by, call.rounding, call.seed};
  ChosenReducer& chosen = completes ? complete_ : partial_;
  if (!chosen.valid || chosen.reduction != wanted) chosen = {true, wanted, Reducer(wanted)};
  return chosen.reducer;
}

}  // namespace ccom
