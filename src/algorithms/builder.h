// SPDX-License-Identifier: Apache-2.0
//
// Writes a plan step by step, and keeps track of where this rank's part of each block lies.
//
// Bricks (ring.h, direct.h, ...) speak of *positions*: the data in the order in which an algorithm divides it. For
// allreduce position p is block p. For reduce-scatter and allgather the positions that rank r ends up owning must be
// unit r, so positions are a permutation of blocks. A run of positions becomes one step per maximal run of consecutive
// blocks; both ends of a message cut it alike, because they use the same permutation. Or the data lies in scratch by
// positions (Plan::order): then a run of positions is one step, and begin() and finish() permute.
//
// Where a block's current value lies (its "home"): first in the input, after the first combination in the output or,
// where the output is too small for it (reduce-scatter), in scratch. Bricks need not know. Homes and order are kept by
// runs, so that writing a step costs the same however many blocks it moves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "plan/plan.h"
#include "plan/run_map.h"

namespace ccom {

// A run of positions.
struct Range {
  uint32_t first = 0;
  uint32_t count = 0;
  // The i-th of n equal parts; count must be divisible.
  Range part(uint32_t i, uint32_t n) const {
    CCOM_ASSERT(i < n && count % n == 0);
    return {first + i * (count / n), count / n};
  }
};

// A group of ranks as one of them sees it.
struct Group {
  const std::vector<Rank>* ranks = nullptr;
  uint32_t me = 0;
  uint32_t size() const { return static_cast<uint32_t>(ranks->size()); }
  Rank rank(uint32_t index) const { return (*ranks)[index % ranks->size()]; }
};

// Where a run of blocks lies.
struct Location {
  Buffer buffer = Buffer::Input;
  uint32_t index = 0;
  Location at(uint32_t distance) const { return {buffer, index + distance}; }
  friend bool operator==(const Location&, const Location&) = default;
};

// Appends steps whose data lie where the caller says.
class StepWriter {
 public:
  // `plan` has everything but steps and scratch.
  explicit StepWriter(Plan plan) : plan_(std::move(plan)) {}

  // Of a plan with an order: for positions from `position` on.
  uint32_t new_scratch(uint32_t slots, uint32_t position = 0);
  void copy(Location source, Location target, uint32_t block, uint32_t count, bool completes = false);
  // Copies blocks, which lie anywhere, to a row of places, by runs that are in a row already.
  void pack(std::span<const Location> sources, Location target);
  void send_from(Rank peer, Location source, uint32_t block, uint32_t count, uint8_t channel = 0, uint8_t egress = 0);
  void receive_into(Rank peer, Location target, uint32_t block, uint32_t count, uint8_t channel = 0);
  void receive_reduce_into(Rank peer, Location own, Location target, uint32_t block, uint32_t count, bool completes,
                           uint8_t channel = 0);
  // To `count` places from those of scratch, or of the user's buffer; `position`: of scratch.
  void permute(Location source, Location target, uint32_t position, const NumberList& permutation);
  void reduce(uint32_t first_slot, uint32_t inputs, Location target, uint32_t block, uint32_t count, bool completes);
  void add(const Step& step) { plan_.steps.push_back(step); }

  const Plan& plan() const { return plan_; }
  Plan finish() && { return std::move(plan_); }

 protected:
  Plan plan_;

 private:
  bool is_peer(Rank rank) const { return rank >= 0 && rank < plan_.nranks && rank != plan_.rank; }
};

class Builder : public StepWriter {
 public:
  // `plan` has everything but steps and scratch. block_of_position may be empty: identity.
  explicit Builder(Plan plan, const std::vector<uint32_t>& block_of_position = {});
  // The data lies in scratch by the plan's order; of the ranks' units `own` are this rank's, as positions. Before the
  // first brick the input is brought there, after the last one the result into the output.
  Builder(Plan plan, const std::vector<Range>& own);
  void bring_output(const NumberList& position_of_block);

  // Transfers of a run of positions. Receives move the blocks' homes.
  void send(Rank peer, Range range, uint8_t channel = 0);
  void receive(Rank peer, Range range, uint8_t channel = 0);
  void receive_reduce(Rank peer, Range range, bool completes, uint8_t channel = 0);
  // Receives the range from every other member and reduces all parts in group order: one rounding.
  void gather_and_reduce(const Group& group, Range range, bool completes, uint8_t channel = 0);
  // Moves the blocks to their final places in the output, where they are not there yet. `completes`: they are sums
  // already.
  void settle(Range range, bool completes = false);

  // For bricks that place data themselves.
  // Brings a run of blocks together in one buffer, so that one step can read it.
  Location unify(uint32_t block, uint32_t count);
  void set_home(uint32_t block, uint32_t count, Location home);
  // Is it the memory that the output's block occupies? (Then it must not be overwritten while it is being sent.)
  bool is_output(Location location) const {
    return location.buffer == Buffer::Output || (plan_.in_place && location.buffer == Buffer::Input);
  }
  // Calls fn(first block, count) for each maximal run of consecutive blocks.
  template <typename Fn>
  void for_each_run(Range range, Fn fn) const {
    uint32_t p = range.first;
    const uint32_t end = range.first + range.count;
    auto run = p < end ? run_at(p) : order_.end();
    while (p < end) {
      const uint32_t block = run->block + (p - run->position);
      uint32_t count = end - p;
      if (run + 1 != order_.end()) count = std::min(count, run[1].position - p);
      // Runs of scratch slots must not cross units, unless units are single blocks.
      if (const uint32_t unit = plan_.blocks_per_unit; unit > 1 && plan_.order.empty())
        count = std::min(count, unit - block % unit);
      fn(block, count);
      p += count;
      if (run + 1 != order_.end() && run[1].position == p) ++run;
    }
  }

 private:
  // Position `position` is block `block`, and so on until the next run.
  struct OrderRun {
    uint32_t position;
    uint32_t block;
  };

  static std::vector<OrderRun> runs_of(const std::vector<uint32_t>& block_of_position);
  std::vector<OrderRun>::const_iterator run_at(uint32_t position) const;
  Location target_of(uint32_t block, bool completes);
  bool scatters() const { return plan_.output_units < plan_.input_units; }

  std::vector<OrderRun> order_;
  uint32_t blocks_;                      // in the longer of input and output
  RunMap<Location> homes_;               // by block
  uint32_t partial_slots_ = UINT32_MAX;  // first slot of a vector's worth of scratch, once it is needed
};

}  // namespace ccom
