// SPDX-License-Identifier: Apache-2.0
//
// The plan language: what one rank does in a collective, as data.
//
// A plan knows blocks, not bytes: no sizes, types, operators or pointers, so it is proved once for all of them and
// cached. Its steps are written as a straight program; which of them may run at the same time follows from the blocks
// they touch and from the order on each channel and egress (dependencies.h). What a plan must achieve is checked by
// verify.h.
//
// Blocks. A buffer is a row of units of equal length (allreduce: one unit, the vector; allgather: one unit per rank),
// and each unit is cut into `blocks_per_unit` blocks (partition.h). Scratch consists of slots, each big enough for any
// block.
//
// Positions. Algorithms over several levels or streams pass on the units of many ranks at a time, which lie apart in
// the user's buffer. Such plans keep the data in scratch in an order of their own (Plan::order), in which what a
// message carries is one run, and bring it from or into the user's order by one step of the rank alone (Permute): a
// rank has as many steps as the algorithm has, however many the ranks are (docs/decisions/0029).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/collective.h"

namespace ccom {

enum class StepKind : uint8_t {
  Send,           // source -> peer
  Receive,        // peer -> target
  ReceiveReduce,  // target = source op what peer sends, or, of a peer of lower rank, what it sends op source
  Copy,           // target = source
  Reduce,   // target = source op source+count op source+2*count ...: `inputs` runs of scratch slots, in that order
  Permute,  // target + i = source + permutations[inputs][i]
};

enum class Buffer : uint8_t { Input, Output, Scratch };

// Runs of `count` blocks. A step's length in elements is that of the blocks [block, block + count) of the partition:
// Input and Output runs start at that block; a scratch run has no length of its own. A scratch run lies inside one unit
// unless units have one block each. Where the plan has an order `block` is a position: a scratch run is one of slots
// for the positions [block, block + count), a run of the user's buffer one of blocks as long as those.
struct Step {
  StepKind kind;
  Buffer source_buffer = Buffer::Input;
  Buffer target_buffer = Buffer::Output;
  uint8_t channel = 0;
  uint16_t inputs = 0;     // Reduce: how many; Permute: which permutation
  bool completes = false;  // Copy, Reduce, ReceiveReduce: every contribution is in now (an average divides here)
  // Send: those of one egress, but 0, are started in program order, to whomever they go: they leave by the same wire,
  // which what is needed first is to have first, even if other data is there earlier. One for all sends of a channel.
  uint8_t egress = 0;
  Rank peer = -1;
  uint32_t source = 0;  // first block or slot
  uint32_t target = 0;
  uint32_t count = 0;
  uint32_t block = 0;

  bool is_transfer() const {
    return kind == StepKind::Send || kind == StepKind::Receive || kind == StepKind::ReceiveReduce;
  }
  bool is_receive() const { return kind == StepKind::Receive || kind == StepKind::ReceiveReduce; }
  bool reads_source() const { return kind != StepKind::Receive; }
  bool writes_target() const { return kind != StepKind::Send; }
  // Blocks read from source_buffer, starting at `source`.
  uint32_t source_count() const { return kind == StepKind::Reduce ? count * inputs : count; }
  friend bool operator==(const Step&, const Step&) = default;
};
static_assert(sizeof(Step) <= 32);

// Numbers that the plans of many ranks share. An immutable value.
class NumberList {
 public:
  NumberList() = default;
  explicit NumberList(std::vector<uint32_t> numbers)
      : numbers_(std::make_shared<const std::vector<uint32_t>>(std::move(numbers))) {}
  bool empty() const { return numbers_ == nullptr || numbers_->empty(); }
  uint32_t size() const { return numbers_ == nullptr ? 0 : static_cast<uint32_t>(numbers_->size()); }
  uint32_t operator[](uint32_t i) const { return (*numbers_)[i]; }
  friend bool operator==(const NumberList& a, const NumberList& b) {
    return a.numbers_ == b.numbers_ || (a.size() == b.size() && (a.empty() || *a.numbers_ == *b.numbers_));
  }

 private:
  std::shared_ptr<const std::vector<uint32_t>> numbers_;
};

// Slots of scratch from `slot` on, up to the next stretch, are for positions from `position` on.
struct Stretch {
  uint32_t slot = 0, position = 0;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// One rank's part. A value.
struct Plan {
  Collective collective = Collective::AllReduce;
  std::string algorithm;  // "ring"
  Rank rank = 0;
  int nranks = 1;
  Rank root = -1;         // rooted collectives
  bool in_place = false;  // made for buffers that alias as the C API allows
  uint32_t blocks_per_unit = 1;
  uint32_t input_units = 0;  // 0: this rank's input is not touched
  uint32_t output_units = 0;
  uint32_t scratch_slots = 0;
  // Units differ in length. A step's run of blocks is then one of the input if it sends, else one of the output. Units
  // of one block only.
  bool has_unequal_units = false;
  // Position p is block order[p] of the collective's largest buffer; all ranks have the same order. Empty: steps count
  // blocks, and there are neither stretches nor permutations.
  NumberList order{};
  std::vector<Stretch> stretches{};        // of all slots, ascending; the first one begins at slot 0
  std::vector<NumberList> permutations{};  // of 0 ... size - 1
  std::vector<Step> steps{};

  uint32_t input_blocks() const { return input_units * blocks_per_unit; }
  uint32_t output_blocks() const { return output_units * blocks_per_unit; }
  // Which block of its unit Step::block is: its length follows from that.
  uint32_t within_unit(uint32_t block) const { return (order.empty() ? block : order[block]) % blocks_per_unit; }
  // The position that a slot is for, of a plan with an order.
  uint32_t position_of(uint32_t slot) const {
    const auto next = std::ranges::upper_bound(stretches, slot, {}, &Stretch::slot);
    return std::prev(next)->position + (slot - std::prev(next)->slot);
  }
  // In place: input block b is the same memory as output block b + output_shift() (which may be out of range).
  int64_t output_shift() const { return in_place_shift(collective, rank) * int64_t{blocks_per_unit}; }
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Of a ReceiveReduce: whether what the peer sends is the left operand.
inline bool receives_left_operand(const Plan& plan, const Step& step) { return step.peer < plan.rank; }

}  // namespace ccom
