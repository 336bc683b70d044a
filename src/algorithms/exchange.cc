// SPDX-License-Identifier: Apache-2.0
#include "algorithms/exchange.h"

namespace ccom {

void Exchange::combine(Rank partner, bool completes) {
  give(partner);
  absorb(partner, completes);
}

void Exchange::absorb(Rank partner, bool completes) {
  const Location own = value();
  const Location target = completes && !builder_.is_output(own) ? Location{Buffer::Output, block_} : scratch();
  builder_.receive_reduce_into(partner, own, target, block_, count_, completes, channel_);
  builder_.set_home(block_, count_, target);
}

void Exchange::take(Rank partner, bool final) {
  const Location target = final ? Location{Buffer::Output, block_} : scratch();
  builder_.receive_into(partner, target, block_, count_, channel_);
  builder_.set_home(block_, count_, target);
}

void Exchange::open_slots(uint32_t slots, uint32_t own) {
  gathered_ = builder_.new_scratch(slots * count_);
  gathered_slots_ = slots;
  if (own != UINT32_MAX) builder_.copy(value(), slot_at(own), block_, count_);
}

void Exchange::sum_slots(bool completes) {
  Location target = slot_at(0);
  if (gathered_slots_ > 1) {
    target = completes ? Location{Buffer::Output, block_} : scratch();
    builder_.reduce(gathered_, gathered_slots_, target, block_, count_, completes);
  }
  builder_.set_home(block_, count_, target);
}

Location Exchange::scratch() {
  const Location own = value();
  if (slots_ == UINT32_MAX) slots_ = builder_.new_scratch(2 * count_);
  const bool first_is_busy = own.buffer == Buffer::Scratch && own.index == slots_;
  return {Buffer::Scratch, first_is_busy ? slots_ + count_ : slots_};
}

}  // namespace ccom
