// SPDX-License-Identifier: Apache-2.0
//
// The plan language: what one rank does in a collective, as data.
//
// A plan knows blocks, not bytes: no sizes, types, operators or pointers, so it is proved once for all of them and
// cached. Its steps are written as a straight program; which of them may run at the same time follows from the blocks
// they touch and from the order on each channel (dependencies.h). What a plan must achieve is checked by verify.h.
//
// Blocks. A buffer is a row of units of equal length (allreduce: one unit, the vector; allgather: one unit per rank),
// and each unit is cut into `blocks_per_unit` blocks (partition.h). Scratch consists of slots, each big enough for any
// block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/collective.h"

namespace ccom {

enum class StepKind : uint8_t {
  Send,           // source -> peer
  Receive,        // peer -> target
  ReceiveReduce,  // target = source op what peer sends, or, of a peer of lower rank, what it sends op source
  Copy,           // target = source
  Reduce,  // target = source op source+count op source+2*count ...: `inputs` runs of scratch slots, in that order
};

enum class Buffer : uint8_t { Input, Output, Scratch };

// Runs of `count` blocks. A step's length in elements is that of the blocks [block, block + count) of the partition:
// Input and Output runs start at that block; a scratch run has no length of its own. A scratch run lies inside one unit
// unless units have one block each.
struct Step {
  StepKind kind;
  Buffer source_buffer = Buffer::Input;
  Buffer target_buffer = Buffer::Output;
  uint8_t channel = 0;
  uint16_t inputs = 0;     // Reduce only
  bool completes = false;  // Copy, Reduce, ReceiveReduce: every contribution is in now (an average divides here)
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
  std::vector<Step> steps;

  uint32_t input_blocks() const { return input_units * blocks_per_unit; }
  uint32_t output_blocks() const { return output_units * blocks_per_unit; }
  // In place: input block b is the same memory as output block b + output_shift() (which may be out of range).
  int64_t output_shift() const { return in_place_shift(collective, rank) * int64_t{blocks_per_unit}; }
  friend bool operator==(const Plan&, const Plan&) = default;
};

// Of a ReceiveReduce: whether what the peer sends is the left operand.
inline bool receives_left_operand(const Plan& plan, const Step& step) { return step.peer < plan.rank; }

}  // namespace ccom
