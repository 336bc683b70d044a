// SPDX-License-Identifier: Apache-2.0
//
// The symbolic world of the ranks of one host: node plans run on values instead of data, with vector clocks for races.
// Its staging banks and arrival lines live on from call to call, as those of a communicator do. node_verify.h has the
// rules.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/node_plan.h"
#include "plan/verify.h"

namespace ccom {

class NodeWorld {
 public:
  explicit NodeWorld(size_t ranks) : ranks_(ranks), silent_(ranks) {
    for (RankState& rank : ranks_) rank.knows.assign(ranks, 0);
  }

  struct Call {
    const NodeTask& task;
    std::span<const NodePlan> plans;  // by local rank
    size_t tiles = 1;
  };
  // Runs the call on `inputs` and returns what the output units hold afterwards. A unit is complete or an error.
  Result<UnitValues> run(const Call& call, const UnitValues& inputs);
  // Barriers of the last call.
  size_t barriers() const { return barriers_of_call_; }

 private:
  // A piece of memory. In place, Input and Output are one: as an Output.
  struct Cell {
    Area area;
    Rank owner;
    size_t span;  // tile (buffers) or bank (staging)
    int64_t piece;
    auto operator<=>(const Cell&) const = default;  // NOLINT(modernize-use-nullptr): of its own
  };
  struct Access {
    Rank rank;
    size_t barriers;  // the rank had passed when it did this
  };
  struct Content {
    std::optional<Value> value{};
    Access written{-1, 0};
    std::vector<Access> read{};
  };
  struct RankState {
    std::vector<size_t> knows;                 // by rank: how many of its arrivals happened before now; own: arrivals
    std::array<std::vector<Access>, 2> heard;  // by bank: who has read this rank's line, and when
  };

  Status check_call() const;
  void fill(const NodePlan& plan, const UnitValues& inputs);
  Status run_slot(Rank rank, size_t slot);
  Status run_step(const NodePlan& plan, const NodeStep& step, size_t tile);
  static Status check_step(const NodePlan& plan, const NodeStep& step);
  Status load(const NodePlan& plan, const Cell& from, size_t index, Value& value);
  Status store(const NodePlan& plan, const Cell& to, const Value& value);
  Status spoil(const NodePlan& plan, const NodeStep& step, size_t tile, uint32_t piece);
  Status barrier(size_t slot);
  Status check_return() const;
  Result<UnitValues> collect();

  const NodePlan& plan_of(Rank rank) const { return call_->plans[static_cast<size_t>(rank)]; }
  Cell cell(const Operand& operand, size_t tile, uint32_t piece) const;
  uint64_t origin(const NodePlan& plan, uint32_t block, size_t tile, uint32_t part) const;
  bool happened_before(const Access& access, Rank rank) const;
  Access now(Rank rank) const;
  static void learn(RankState& rank, const RankState& other);
  template <typename Fn>
  void for_each_active(const NodePlan& plan, size_t slot, Fn fn) const;

  std::vector<RankState> ranks_;
  std::map<Cell, Content> cells_;
  std::vector<bool> silent_;
  size_t barriers_ = 0;
  size_t barriers_of_call_ = 0;
  size_t tiles_before_ = 0;
  const Call* call_ = nullptr;
};

}  // namespace ccom
