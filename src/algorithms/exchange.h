// SPDX-License-Identifier: Apache-2.0
//
// A value that members of a group pass on as a whole, for cores and short vectors: one run of blocks, and where it
// lies.
//
// A partner reads what we send while we receive, so the sum goes to another place than the operand: from scratch to
// scratch, and with the last combination to the output.
#pragma once

#include "algorithms/builder.h"

namespace ccom {

class Exchange {
 public:
  Exchange(Builder& builder, uint32_t block, uint32_t count, uint8_t channel)
      : builder_(builder), block_(block), count_(count), channel_(channel) {}

  // Both have a value, and afterwards the sum.
  void combine(Rank partner, bool completes);
  // The partner's value is added to ours, of which it gets nothing.
  void absorb(Rank partner, bool completes);
  void give(Rank partner) { builder_.send_from(partner, value(), block_, count_, channel_); }
  // We get the partner's value in place of what we had; `final`: it is the result.
  void take(Rank partner, bool final);

  // Several values side by side, ours in slot `own` (none: UINT32_MAX), then their sum in the order of slots in place
  // of ours.
  void open_slots(uint32_t slots, uint32_t own);
  void give_slot(Rank partner, uint32_t slot) { builder_.send_from(partner, slot_at(slot), block_, count_, channel_); }
  void take_slot(Rank partner, uint32_t slot) {
    builder_.receive_into(partner, slot_at(slot), block_, count_, channel_);
  }
  void sum_slots(bool completes);

 private:
  Location value() { return builder_.unify(block_, count_); }
  // One of two scratch runs: the one that does not hold the value.
  Location scratch();
  Location slot_at(uint32_t slot) const { return {Buffer::Scratch, gathered_ + slot * count_}; }

  Builder& builder_;
  uint32_t block_, count_;
  uint8_t channel_;
  uint32_t slots_ = UINT32_MAX;
  uint32_t gathered_ = 0, gathered_slots_ = 0;
};

}  // namespace ccom
