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
// Every local rank drives its own share across, so all NICs work. Steps and bytes are the sums over the levels, each
// level working on 1/(product of the outer group sizes) of the data. Source: the 2D-torus scheme of Mikami et al.,
// Massively distributed SGD, 2018 (arXiv 1811.05233); Traff & Hunold, Decomposing MPI collectives for multi-lane
// communication, 2020.
#include <algorithm>
#include <optional>

#include "algorithms/bricks.h"
#include "algorithms/collectives.h"
#include "base/assert.h"

namespace ccom {
namespace {

constexpr uint32_t kTorusQuarters = 4;

std::optional<Group> group_of(const Level& level, Rank rank) {
  for (const auto& ranks : level.groups) {
    const auto found = std::ranges::find(ranks, rank);
    if (found != ranks.end()) return Group{&ranks, static_cast<uint32_t>(found - ranks.begin())};
  }
  return std::nullopt;
}

uint32_t positions_of(const Staged& shape) {
  uint32_t count = 1;
  for (const Level& level : shape.levels) {
    count *= static_cast<uint32_t>(level.owners) * (level.pattern == Pattern::Torus ? kTorusQuarters : 1);
  }
  return count;
}

// What a member owns of `range` after a level's reduce-scatter, without steps.
std::vector<Range> owned_after(const Level& level, const Group& group, Range range) {
  const auto owners = static_cast<uint32_t>(level.owners);
  if (level.pattern == Pattern::Torus) return torus_owned(group.me, level.rows, level.columns, range);
  if (group.me >= owners) return {};
  return {range.part(group.me, owners)};
}

// Positions that a rank ends up owning, by walking down the levels. Ranges of one position each.
std::vector<uint32_t> final_positions(const Staged& shape, Rank rank) {
  std::vector<Range> ranges{{0, positions_of(shape)}};
  for (const Level& level : shape.levels) {
    const std::optional<Group> group = group_of(level, rank);
    std::vector<Range> next;
    for (const Range& range : ranges) {
      if (!group) continue;
      for (const Range& owned : owned_after(level, *group, range)) next.push_back(owned);
    }
    ranges = next;
  }
  std::vector<uint32_t> positions;
  for (const Range& range : ranges) {
    for (uint32_t i = 0; i < range.count; ++i) positions.push_back(range.first + i);
  }
  return positions;
}

std::vector<Range> reduce_scatter(Builder& builder, const Level& level, const Group& group, Range range,
                                  bool completes) {
  switch (level.pattern) {
    case Pattern::Ring: return {ring_reduce_scatter(builder, group, range, completes)};
    case Pattern::Circulant: return {circulant_reduce_scatter(builder, group, range, completes)};
    case Pattern::Torus: return torus_reduce_scatter(builder, group, level.rows, level.columns, range, completes);
    default: break;
  }
  const Range own = direct_reduce_scatter(builder, group, static_cast<uint32_t>(level.owners), range, completes);
  return own.count > 0 ? std::vector<Range>{own} : std::vector<Range>{};
}

void allgather(Builder& builder, const Level& level, const Group& group, Range range) {
  switch (level.pattern) {
    case Pattern::Ring: ring_allgather(builder, group, range); return;
    case Pattern::Circulant: circulant_allgather(builder, group, range); return;
    case Pattern::Torus: torus_allgather(builder, group, level.rows, level.columns, range); return;
    default: direct_allgather(builder, group, static_cast<uint32_t>(level.owners), range);
  }
}

// One rank's way down and up the levels.
class Descent {
 public:
  Descent(Builder& builder, const Staged& shape, Rank rank) : builder_(builder), shape_(shape), rank_(rank) {}

  void down() {
    for (size_t l = 0; l < shape_.levels.size(); ++l) {
      const Level& level = shape_.levels[l];
      const std::optional<Group> group = group_of(level, rank_);
      const bool completes = l + 1 == shape_.levels.size() && shape_.core.empty();
      std::vector<Range> next;
      for (const Range& range : held_.back()) {
        if (!group) continue;
        for (const Range& own : reduce_scatter(builder_, level, *group, range, completes)) next.push_back(own);
      }
      held_.push_back(std::move(next));
    }
    for (const Level& core : shape_.core) {
      const std::optional<Group> group = group_of(core, rank_);
      for (const Range& range : held_.back()) {
        if (!group) continue;
        if (core.pattern == Pattern::OneShot) {
          one_shot_allreduce(builder_, *group, range, true);
        } else {
          recursive_doubling_allreduce(builder_, *group, range, true);
        }
      }
    }
  }

  // The same ranges without the reduce-scatter's steps, for a plain allgather.
  void skip_down() {
    for (const Level& level : shape_.levels) {
      const std::optional<Group> group = group_of(level, rank_);
      CCOM_ASSERT(group.has_value());
      std::vector<Range> next;
      for (const Range& range : held_.back()) {
        for (const Range& own : owned_after(level, *group, range)) next.push_back(own);
      }
      held_.push_back(std::move(next));
    }
  }

  void up() {
    for (size_t l = shape_.levels.size(); l-- > 0;) {
      const std::optional<Group> group = group_of(shape_.levels[l], rank_);
      for (const Range& range : held_[l]) {
        if (group) allgather(builder_, shape_.levels[l], *group, range);
      }
    }
  }

 private:
  Builder& builder_;
  const Staged& shape_;
  Rank rank_;
  std::vector<std::vector<Range>> held_{{{0, positions_of(shape_)}}};  // by depth
};

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

Plan allreduce_plan(const Call& call, const Staged& shape, const std::string& algorithm) {
  Plan plan = empty_plan(call, algorithm);
  plan.blocks_per_unit = positions_of(shape);
  plan.input_units = plan.output_units = 1;
  Builder builder(std::move(plan));
  Descent descent(builder, shape, call.rank);
  descent.down();
  descent.up();
  builder.settle({0, positions_of(shape)}, call.nranks == 1);
  return std::move(builder).finish();
}

Plan by_owner_plan(const Call& call, const Staged& shape, const std::string& algorithm) {
  const bool scatters = call.collective == Collective::ReduceScatter;
  Plan plan = empty_plan(call, algorithm);
  plan.blocks_per_unit = positions_of(shape) / static_cast<uint32_t>(call.nranks);
  plan.input_units = scatters ? static_cast<uint32_t>(call.nranks) : 1;
  plan.output_units = scatters ? 1 : static_cast<uint32_t>(call.nranks);
  const uint32_t unit = plan.blocks_per_unit;
  Builder builder(std::move(plan), blocks_by_owner(shape, call.nranks, unit));
  Descent descent(builder, shape, call.rank);
  if (scatters) {
    descent.down();
  } else {
    descent.skip_down();
    descent.up();
  }
  for (const uint32_t position : final_positions(shape, call.rank)) {
    builder.settle({position, 1}, scatters && call.nranks == 1);
  }
  return std::move(builder).finish();
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
