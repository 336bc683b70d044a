// SPDX-License-Identifier: Apache-2.0
//
// Composition: reduce-scatter down the levels, allreduce core, allgather up.
//
//   two levels, hosts {0 1} {2 3}: reduce-scatter inside, allreduce across, allgather inside
//
//     0 -- 1      each rank ends the first phase with half of the vector,
//     |    |      exchanges that half with the rank of the same index on
//     2 -- 3      the other hosts, and puts the halves together again
//
// Every local rank drives its own share across, so all NICs work. Windows of the data, on channels of their own, use
// one level's links while others use the next one's: the time tends from the levels' sum to their maximum. Steps and
// bytes are the sums over the levels, each level working on 1/(product of the outer group sizes) of the data. Source:
// the 2D-torus scheme of Mikami et al., Massively distributed SGD, 2018 (arXiv 1811.05233); Traff & Hunold, Decomposing
// MPI collectives for multi-lane communication, 2020.
#include <span>
#include <utility>

#include "algorithms/bricks.h"
#include "algorithms/collectives.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {
namespace {

uint32_t positions_of(const Staged& shape) {
  auto count = static_cast<uint32_t>(shape.windows);
  for (const Level& level : shape.levels) count *= static_cast<uint32_t>(level.owners) * weight_sum(streams_of(level));
  for (const Level& level : shape.core) count *= weight_sum(streams_of(level));
  return count;
}

// The most ranges with a channel of their own that a rank has at a time.
uint32_t lanes_of(const Staged& shape) {
  uint32_t lanes = 1;
  for (const auto* levels : {&shape.levels, &shape.core}) {
    for (const Level& level : *levels) lanes *= stream_count(level);
  }
  return lanes;
}

// A range on its way, and the number of its channel: that of the stream which it came with.
struct Piece {
  Range range;
  uint32_t lane = 0;
};

// What a member owns of `range` after a level's reduce-scatter: one range per stream.
std::vector<Range> owned_after(const Level& level, uint32_t me, Range range) {
  const auto owners = static_cast<uint32_t>(level.owners);
  switch (level.pattern) {
    case Pattern::Torus:
    case Pattern::Rings: return torus_owned(level, me, range);
    case Pattern::Swing: return swing_owned(level, me, range);
    case Pattern::Bine: return {bine_owned(me, owners, range)};
    default: break;
  }
  if (me >= owners) return {};
  return {range.part(me, owners)};
}

std::vector<Piece> owned_after(const Level& level, uint32_t me, const std::vector<Piece>& pieces) {
  std::vector<Piece> owned;
  for (const Piece& piece : pieces) {
    uint32_t lane = piece.lane * stream_count(level);
    for (const Range& range : owned_after(level, me, piece.range)) owned.push_back({range, lane++});
  }
  return owned;
}

void reduce_scatter(Builder& builder, const Level& level, const Group& group, Range range, bool completes,
                    uint8_t channel) {
  switch (level.pattern) {
    case Pattern::Ring: return ring_reduce_scatter(builder, group, range, completes, 1, channel);
    case Pattern::Circulant: return circulant_reduce_scatter(builder, group, range, completes, channel);
    case Pattern::Torus:
    case Pattern::Rings: return torus_reduce_scatter(builder, group, level, range, completes, channel);
    case Pattern::Swing: return swing_reduce_scatter(builder, group, level, range, completes, channel);
    case Pattern::Bine: return bine_reduce_scatter(builder, group, range, completes, channel);
    default: break;
  }
  direct_reduce_scatter(builder, group, static_cast<uint32_t>(level.owners), range, completes, channel);
}

void allgather(Builder& builder, const Level& level, const Group& group, Range range, uint8_t channel) {
  switch (level.pattern) {
    case Pattern::Ring: return ring_allgather(builder, group, range, 1, channel);
    case Pattern::Circulant: return circulant_allgather(builder, group, range, channel);
    case Pattern::Torus:
    case Pattern::Rings: return torus_allgather(builder, group, level, range, channel);
    case Pattern::Swing: return swing_allgather(builder, group, level, range, channel);
    case Pattern::Bine: return bine_allgather(builder, group, range, channel);
    default: break;
  }
  direct_allgather(builder, group, static_cast<uint32_t>(level.owners), range, channel);
}

void allreduce(Builder& builder, const Level& core, const Group& group, Range range, uint8_t channel) {
  switch (core.pattern) {
    case Pattern::OneShot: return one_shot_allreduce(builder, group, range, true, channel);
    case Pattern::SwingLatency: return swing_allreduce(builder, group, core, range, true, channel);
    case Pattern::BineLatency:
      return recursive_doubling_allreduce(builder, group, range, true, channel, Partners::OfBine);
    default: break;
  }
  if (!core.dims.empty()) return recursive_doubling_by_dimension(builder, group, core, range, true, channel);
  recursive_doubling_allreduce(builder, group, range, true, channel);
}

// One rank's way down and up the levels, with one window's data.
class LevelPipeline {
 public:
  // `groups`: the rank's, by level, the core's last.
  LevelPipeline(const Staged& shape, std::span<const Group> groups, int window)
      : shape_(shape), groups_(groups), window_(static_cast<uint32_t>(window)), lanes_(lanes_of(shape)) {
    CCOM_ASSERT(channels_of(shape) <= kMostChannels);
    held_.push_back({{whole(), 0}});
    for (size_t l = 0; l < shape.levels.size(); ++l) {
      held_.push_back(groups[l].ranks != nullptr ? owned_after(shape.levels[l], groups[l].me, held_.back())
                                                 : std::vector<Piece>{});
    }
  }

  Range whole() const { return Range{0, positions_of(shape_)}.part(window_, static_cast<uint32_t>(shape_.windows)); }
  // What the rank owns when it is down.
  const std::vector<Piece>& owned() const { return held_.back(); }

  // The way down has a phase per level and one for the core, the way up a phase per level.
  size_t phases_down() const { return shape_.levels.size() + shape_.core.size(); }
  size_t phases_up() const { return shape_.levels.size(); }

  void down(Builder& builder, size_t phase) const {
    if (phase == shape_.levels.size()) return through_core(builder);
    if (groups_[phase].ranks == nullptr) return;
    const Level& level = shape_.levels[phase];
    const bool completes = phase + 1 == shape_.levels.size() && shape_.core.empty();
    for (const Piece& piece : held_[phase]) {
      reduce_scatter(builder, level, groups_[phase], piece.range, completes, channel_of(piece, level));
    }
  }

  void up(Builder& builder, size_t phase) const {
    const size_t l = shape_.levels.size() - 1 - phase;
    if (groups_[l].ranks == nullptr) return;
    for (const Piece& piece : held_[l]) {
      allgather(builder, shape_.levels[l], groups_[l], piece.range, channel_of(piece, shape_.levels[l], true));
    }
  }

 private:
  void through_core(Builder& builder) const {
    if (groups_.back().ranks == nullptr) return;
    for (const Piece& piece : owned()) {
      allreduce(builder, shape_.core[0], groups_.back(), piece.range, channel_of(piece, shape_.core[0]));
    }
  }

  // Of the first stream.
  uint8_t channel_of(const Piece& piece, const Level& level, bool up = false) const {
    const uint32_t first = up && shape_.windows > 1 ? lanes_ : 0;
    return static_cast<uint8_t>(first + piece.lane * stream_count(level));
  }

  const Staged& shape_;
  std::span<const Group> groups_;
  uint32_t window_;
  uint32_t lanes_;
  std::vector<std::vector<Piece>> held_;  // by depth
};

// All windows of one rank.
std::vector<LevelPipeline> descents(const Staged& shape, std::span<const Group> groups) {
  std::vector<LevelPipeline> all;
  for (int window = 0; window < shape.windows; ++window) all.emplace_back(shape, groups, window);
  return all;
}

// Positions that a rank ends up owning.
std::vector<uint32_t> final_positions(const Staged& shape, std::span<const Group> groups) {
  std::vector<uint32_t> positions;
  for (const LevelPipeline& descent : descents(shape, groups)) {
    for (const Piece& piece : descent.owned()) {
      for (uint32_t i = 0; i < piece.range.count; ++i) positions.push_back(piece.range.first + i);
    }
  }
  return positions;
}

// The windows' phases as a pipeline: in turn t window w is in phase t - w. Windows share channels, one set for the way
// down and one for the way up, so on each level a window's steps start when its predecessor's have, while that one goes
// on to the next level's links. On channels of their own all windows would go through a level at the same pace and
// nothing would overlap; with one set for both ways one window's descent would wait for another's ascent.
void run_windows(Builder& builder, const std::vector<LevelPipeline>& windows, bool down, bool up) {
  const size_t phases_down = down ? windows[0].phases_down() : 0;
  const size_t phases = phases_down + (up ? windows[0].phases_up() : 0);
  for (size_t turn = 0; turn + 1 < phases + windows.size(); ++turn) {
    for (size_t phase = 0; phase < phases && phase <= turn; ++phase) {
      if (turn - phase >= windows.size()) continue;
      const LevelPipeline& window = windows[turn - phase];
      phase < phases_down ? window.down(builder, phase) : window.up(builder, phase - phases_down);
    }
  }
}

}  // namespace

int channels_of(const Staged& shape) { return static_cast<int>(lanes_of(shape)) * (shape.windows > 1 ? 2 : 1); }

StagedPlans::StagedPlans(const Staged& shape, int nranks, Collective collective)
    : shape_(shape), depth_(shape.levels.size() + shape.core.size()), groups_(static_cast<size_t>(nranks) * depth_) {
  CCOM_ASSERT(shape.windows >= 1 && shape.core.size() <= 1);
  for (size_t l = 0; l < depth_; ++l) {
    const Level& level = l < shape.levels.size() ? shape.levels[l] : shape.core[0];
    for (const std::vector<Rank>& ranks : level.groups) {
      for (uint32_t i = 0; i < ranks.size(); ++i) {
        CCOM_ASSERT(ranks[i] >= 0 && ranks[i] < nranks);
        groups_[static_cast<size_t>(ranks[i]) * depth_ + l] = {&ranks, i};
      }
    }
  }
  if (collective == Collective::AllReduce) return;
  const uint32_t positions = positions_of(shape);
  unit_blocks_ = positions / static_cast<uint32_t>(nranks);
  divides_evenly_ = shape.core.empty() && unit_blocks_ * static_cast<uint32_t>(nranks) == positions;
  block_of_.resize(positions);
  uint32_t block = 0;
  for (Rank rank = 0; rank < nranks && divides_evenly_; ++rank) {
    const std::vector<uint32_t> owned = final_positions(shape, groups_of(rank));
    divides_evenly_ = owned.size() == unit_blocks_;
    for (const uint32_t position : owned) block_of_[position] = block++;
  }
  if (!shape.by_position || !divides_evenly_) return;
  std::vector<uint32_t> position_of(positions);
  for (uint32_t position = 0; position < positions; ++position) position_of[block_of_[position]] = position;
  position_of_ = NumberList(std::move(position_of));
  order_ = NumberList(block_of_);
}

Plan StagedPlans::allreduce(const Call& call, const std::string& algorithm) const {
  Plan plan = empty_plan(call, algorithm);
  plan.blocks_per_unit = positions_of(shape_);
  Builder builder(std::move(plan));
  run_windows(builder, descents(shape_, groups_of(call.rank)), true, true);
  builder.settle({0, positions_of(shape_)}, call.nranks == 1);
  return std::move(builder).finish();
}

Plan StagedPlans::by_owner(const Call& call, const std::string& algorithm) const {
  CCOM_ASSERT(divides_evenly_);
  Plan plan = empty_plan(call, algorithm);
  plan.blocks_per_unit = unit_blocks_;
  std::span<const Group> groups = groups_of(call.rank);
  if (shape_.by_position && call.nranks > 1) return by_position(std::move(plan), groups);
  const bool scatters = call.collective == Collective::ReduceScatter;
  Builder builder(std::move(plan), block_of_);
  run_windows(builder, descents(shape_, groups), scatters, !scatters);
  for (const uint32_t position : final_positions(shape_, groups)) {
    builder.settle({position, 1}, scatters && call.nranks == 1);
  }
  return std::move(builder).finish();
}

Plan StagedPlans::by_position(Plan plan, std::span<const Group> groups) const {
  const bool scatters = plan.collective == Collective::ReduceScatter;
  plan.order = order_;
  const std::vector<LevelPipeline> windows = descents(shape_, groups);
  std::vector<Range> own;
  for (const LevelPipeline& window : windows) {
    for (const Piece& piece : window.owned()) own.push_back(piece.range);
  }
  Builder builder(std::move(plan), own);
  run_windows(builder, windows, scatters, !scatters);
  if (!scatters) builder.bring_output(position_of_);
  for (const Range& range : own) {
    if (scatters) builder.settle(range);
  }
  return std::move(builder).finish();
}

Plan StagedPlans::make(const Call& call, const std::string& algorithm) const {
  CCOM_ASSERT(static_cast<size_t>(call.nranks) * depth_ == groups_.size());
  return call.collective == Collective::AllReduce ? allreduce(call, algorithm) : by_owner(call, algorithm);
}

bool divides_evenly(const Staged& shape, int nranks) {
  return StagedPlans(shape, nranks, Collective::AllGather).divides_evenly();
}

Plan staged_plan(const Call& call, const Staged& shape, const std::string& algorithm) {
  return StagedPlans(shape, call.nranks, call.collective).make(call, algorithm);
}

}  // namespace ccom
