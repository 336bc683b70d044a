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
#include <algorithm>
#include <optional>

#include "algorithms/bricks.h"
#include "algorithms/collectives.h"
#include "algorithms/streams.h"
#include "base/assert.h"

namespace ccom {
namespace {

std::optional<Group> group_of(const Level& level, Rank rank) {
  for (const auto& ranks : level.groups) {
    const auto found = std::ranges::find(ranks, rank);
    if (found != ranks.end()) return Group{&ranks, static_cast<uint32_t>(found - ranks.begin())};
  }
  return std::nullopt;
}

uint32_t positions_of(const Staged& shape) {
  auto count = static_cast<uint32_t>(shape.windows);
  for (const Level& level : shape.levels) count *= static_cast<uint32_t>(level.owners) * weight_sum(streams_of(level));
  for (const Level& level : shape.core) count *= weight_sum(streams_of(level));
  return count;
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
    case Pattern::Torus: return torus_owned(level, me, range);
    case Pattern::Swing: return swing_owned(level, me, range);
    case Pattern::Rings: return rings_owned(level, me, range);
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
    case Pattern::Torus: return torus_reduce_scatter(builder, group, level, range, completes, channel);
    case Pattern::Swing: return swing_reduce_scatter(builder, group, level, range, completes, channel);
    case Pattern::Rings: return rings_reduce_scatter(builder, group, level, range, completes, channel);
    default: break;
  }
  direct_reduce_scatter(builder, group, static_cast<uint32_t>(level.owners), range, completes, channel);
}

void allgather(Builder& builder, const Level& level, const Group& group, Range range, uint8_t channel) {
  switch (level.pattern) {
    case Pattern::Ring: return ring_allgather(builder, group, range, 1, channel);
    case Pattern::Circulant: return circulant_allgather(builder, group, range, channel);
    case Pattern::Torus: return torus_allgather(builder, group, level, range, channel);
    case Pattern::Swing: return swing_allgather(builder, group, level, range, channel);
    case Pattern::Rings: return rings_allgather(builder, group, level, range, channel);
    default: break;
  }
  direct_allgather(builder, group, static_cast<uint32_t>(level.owners), range, channel);
}

void allreduce(Builder& builder, const Level& core, const Group& group, Range range, uint8_t channel) {
  switch (core.pattern) {
    case Pattern::OneShot: return one_shot_allreduce(builder, group, range, true, channel);
    case Pattern::SwingLatency: return swing_allreduce(builder, group, core, range, true, channel);
    default: break;
  }
  if (!core.dims.empty()) return recursive_doubling_by_dimension(builder, group, core, range, true, channel);
  recursive_doubling_allreduce(builder, group, range, true, channel);
}

// One rank's way down and up the levels, with one window's data.
class Descent {
 public:
  Descent(const Staged& shape, Rank rank, int window)
      : shape_(shape), window_(static_cast<uint32_t>(window)), channels_(channels_of(shape)) {
    CCOM_ASSERT(channels_ <= kMostChannels);
    held_.push_back({{whole(), 0}});
    for (const Level& level : shape.levels) {
      groups_.push_back(group_of(level, rank));
      held_.push_back(groups_.back() ? owned_after(level, groups_.back()->me, held_.back()) : std::vector<Piece>{});
    }
    if (!shape.core.empty()) core_group_ = group_of(shape.core[0], rank);
  }

  Range whole() const { return Range{0, positions_of(shape_)}.part(window_, static_cast<uint32_t>(shape_.windows)); }
  // What the rank owns when it is down.
  const std::vector<Piece>& owned() const { return held_.back(); }

  void down(Builder& builder) const {
    for (size_t l = 0; l < shape_.levels.size(); ++l) {
      if (!groups_[l]) return;
      const bool completes = l + 1 == shape_.levels.size() && shape_.core.empty();
      for (const Piece& piece : held_[l]) {
        reduce_scatter(builder, shape_.levels[l], *groups_[l], piece.range, completes,
                       channel_of(piece, shape_.levels[l]));
      }
    }
    if (!core_group_) return;
    for (const Piece& piece : owned()) {
      allreduce(builder, shape_.core[0], *core_group_, piece.range, channel_of(piece, shape_.core[0]));
    }
  }

  void up(Builder& builder) const {
    for (size_t l = shape_.levels.size(); l-- > 0;) {
      if (!groups_[l]) continue;
      for (const Piece& piece : held_[l]) {
        allgather(builder, shape_.levels[l], *groups_[l], piece.range, channel_of(piece, shape_.levels[l]));
      }
    }
  }

 private:
  // Of the first stream.
  uint8_t channel_of(const Piece& piece, const Level& level) const {
    const uint32_t per_window = static_cast<uint32_t>(channels_ / shape_.windows);
    return static_cast<uint8_t>(window_ * per_window + piece.lane * stream_count(level));
  }

  const Staged& shape_;
  uint32_t window_;
  int channels_;
  std::vector<std::optional<Group>> groups_;  // by level
  std::optional<Group> core_group_;
  std::vector<std::vector<Piece>> held_;  // by depth
};

// All windows of one rank.
std::vector<Descent> descents(const Staged& shape, Rank rank) {
  std::vector<Descent> all;
  for (int window = 0; window < shape.windows; ++window) all.emplace_back(shape, rank, window);
  return all;
}

// Positions that a rank ends up owning.
std::vector<uint32_t> final_positions(const Staged& shape, Rank rank) {
  std::vector<uint32_t> positions;
  for (const Descent& descent : descents(shape, rank)) {
    for (const Piece& piece : descent.owned()) {
      for (uint32_t i = 0; i < piece.range.count; ++i) positions.push_back(piece.range.first + i);
    }
  }
  return positions;
}

// The windows' steps, which share neither blocks nor channels, taken in turn: a world that looks at steps in program
// order sees the beginning of all windows first. `ends`: where each window's steps end; what follows stays last.
void interleave(std::vector<Step>& steps, const std::vector<size_t>& ends) {
  std::vector<Step> turns;
  turns.reserve(steps.size());
  for (size_t i = 0; turns.size() < ends.back(); ++i) {
    size_t begin = 0;
    for (const size_t end : ends) {
      if (begin + i < end) turns.push_back(steps[begin + i]);
      begin = end;
    }
  }
  std::ranges::copy(turns, steps.begin());
}

// For the collectives whose units belong to ranks: which block each position is.
std::vector<uint32_t> blocks_by_owner(const Staged& shape, int nranks, uint32_t blocks_per_unit) {
  std::vector<uint32_t> block_of(positions_of(shape));
  for (Rank rank = 0; rank < nranks; ++rank) {
    const std::vector<uint32_t> positions = final_positions(shape, rank);
    CCOM_ASSERT(positions.size() == blocks_per_unit);
    for (uint32_t i = 0; i < blocks_per_unit; ++i) {
      block_of[positions[i]] = static_cast<uint32_t>(rank) * blocks_per_unit + i;
    }
  }
  return block_of;
}

Plan empty_plan(const Call& call, const std::string& algorithm) {
  Plan plan;
  plan.collective = call.collective;
  plan.algorithm = algorithm;
  plan.rank = call.rank;
  plan.nranks = call.nranks;
  plan.in_place = call.in_place;
  return plan;
}

// The rank's steps, `fn(builder, descent)` for each window, then what it owns or, with everything, all it has put in
// place.
template <typename Fn>
Plan plan_windows(Builder builder, const Staged& shape, Rank rank, bool settles_all, bool completes, Fn fn) {
  std::vector<size_t> ends;
  const std::vector<Descent> windows = descents(shape, rank);
  for (const Descent& descent : windows) {
    fn(builder, descent);
    ends.push_back(builder.plan().steps.size());
  }
  if (settles_all) {
    builder.settle({0, positions_of(shape)}, completes);
  } else {
    for (const uint32_t position : final_positions(shape, rank)) builder.settle({position, 1}, completes);
  }
  Plan plan = std::move(builder).finish();
  if (windows.size() > 1) interleave(plan.steps, ends);
  return plan;
}

Plan allreduce_plan(const Call& call, const Staged& shape, const std::string& algorithm) {
  Plan plan = empty_plan(call, algorithm);
  plan.blocks_per_unit = positions_of(shape);
  plan.input_units = plan.output_units = 1;
  return plan_windows(Builder(std::move(plan)), shape, call.rank, true, call.nranks == 1,
                      [](Builder& builder, const Descent& descent) {
                        descent.down(builder);
                        descent.up(builder);
                      });
}

Plan by_owner_plan(const Call& call, const Staged& shape, const std::string& algorithm) {
  const bool scatters = call.collective == Collective::ReduceScatter;
  Plan plan = empty_plan(call, algorithm);
  plan.blocks_per_unit = positions_of(shape) / static_cast<uint32_t>(call.nranks);
  plan.input_units = scatters ? static_cast<uint32_t>(call.nranks) : 1;
  plan.output_units = scatters ? 1 : static_cast<uint32_t>(call.nranks);
  const uint32_t unit = plan.blocks_per_unit;
  return plan_windows(Builder(std::move(plan), blocks_by_owner(shape, call.nranks, unit)), shape, call.rank, false,
                      scatters && call.nranks == 1, [scatters](Builder& builder, const Descent& descent) {
                        scatters ? descent.down(builder) : descent.up(builder);
                      });
}

}  // namespace

bool divides_evenly(const Staged& shape, int nranks) {
  if (!shape.core.empty()) return false;
  const uint32_t unit = positions_of(shape) / static_cast<uint32_t>(nranks);
  if (unit * static_cast<uint32_t>(nranks) != positions_of(shape)) return false;
  for (Rank rank = 0; rank < nranks; ++rank) {
    if (final_positions(shape, rank).size() != unit) return false;
  }
  return true;
}

Plan staged_plan(const Call& call, const Staged& shape, const std::string& algorithm) {
  return call.collective == Collective::AllReduce ? allreduce_plan(call, shape, algorithm)
                                                  : by_owner_plan(call, shape, algorithm);
}

}  // namespace ccom
