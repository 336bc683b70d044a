// SPDX-License-Identifier: Apache-2.0
#include "algorithms/builder.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {

Builder::Builder(Plan plan, std::vector<uint32_t> block_of_position)
    : plan_(std::move(plan)), block_of_position_(std::move(block_of_position)) {
  homes_.resize(std::max(plan_.input_blocks(), plan_.output_blocks()));
  const bool gathers = plan_.output_units > plan_.input_units;
  const uint32_t own = gathers ? static_cast<uint32_t>(plan_.rank) * plan_.blocks_per_unit : 0;
  for (uint32_t b = 0; b < plan_.input_blocks(); ++b) homes_[own + b] = {Buffer::Input, b};
}

Location Builder::target_of(uint32_t block, bool completes) {
  const bool scatters = plan_.output_units < plan_.input_units;
  if (!scatters) return {Buffer::Output, block};
  if (completes) {
    return {Buffer::Output, block - static_cast<uint32_t>(plan_.rank) * plan_.blocks_per_unit};
  }
  if (partial_slots_ == UINT32_MAX) partial_slots_ = new_scratch(static_cast<uint32_t>(homes_.size()));
  return {Buffer::Scratch, partial_slots_ + block};
}

uint32_t Builder::new_scratch(uint32_t slots) {
  plan_.scratch_slots += slots;
  return plan_.scratch_slots - slots;
}

void Builder::copy(Location source, Location target, uint32_t block, uint32_t count, bool completes) {
  add({.kind = StepKind::Copy,
       .source_buffer = source.buffer,
       .target_buffer = target.buffer,
       .completes = completes,
       .source = source.index,
       .target = target.index,
       .count = count,
       .block = block});
}

void Builder::send_from(Rank peer, Location source, uint32_t block, uint32_t count, uint8_t channel) {
  add({.kind = StepKind::Send,
       .source_buffer = source.buffer,
       .channel = channel,
       .peer = peer,
       .source = source.index,
       .count = count,
       .block = block});
}

void Builder::receive_into(Rank peer, Location target, uint32_t block, uint32_t count, uint8_t channel) {
  add({.kind = StepKind::Receive,
       .target_buffer = target.buffer,
       .channel = channel,
       .peer = peer,
       .target = target.index,
       .count = count,
       .block = block});
}

void Builder::reduce(uint32_t first_slot, uint32_t inputs, Location target, uint32_t block, uint32_t count,
                     bool completes) {
  add({.kind = StepKind::Reduce,
       .source_buffer = Buffer::Scratch,
       .target_buffer = target.buffer,
       .inputs = static_cast<uint16_t>(inputs),
       .completes = completes,
       .source = first_slot,
       .target = target.index,
       .count = count,
       .block = block});
}

void Builder::set_home(uint32_t block, uint32_t count, Location home) {
  for (uint32_t i = 0; i < count; ++i) homes_[block + i] = {home.buffer, home.index + i};
}

Location Builder::unify(uint32_t block, uint32_t count) {
  const Location first = homes_[block];
  bool together = true;
  for (uint32_t i = 1; i < count; ++i) {
    together &= homes_[block + i].buffer == first.buffer && homes_[block + i].index == first.index + i;
  }
  if (together) return first;
  for (uint32_t i = 0; i < count; ++i) {
    const Location target = target_of(block + i, false);
    const Location home = homes_[block + i];
    if (home.buffer != target.buffer || home.index != target.index) copy(home, target, block + i, 1);
    homes_[block + i] = target;
  }
  return homes_[block];
}

void Builder::send(Rank peer, Range range, uint8_t channel) {
  for_each_run(range,
               [&](uint32_t block, uint32_t count) { send_from(peer, unify(block, count), block, count, channel); });
}

void Builder::receive(Rank peer, Range range, uint8_t channel) {
  for_each_run(range, [&](uint32_t block, uint32_t count) {
    const Location target = target_of(block, false);
    receive_into(peer, target, block, count, channel);
    set_home(block, count, target);
  });
}

void Builder::receive_reduce(Rank peer, Range range, bool completes, uint8_t channel) {
  for_each_run(range, [&](uint32_t block, uint32_t count) {
    const Location own = unify(block, count);
    const Location target = target_of(block, completes);
    add({.kind = StepKind::ReceiveReduce,
         .source_buffer = own.buffer,
         .target_buffer = target.buffer,
         .channel = channel,
         .completes = completes,
         .peer = peer,
         .source = own.index,
         .target = target.index,
         .count = count,
         .block = block});
    set_home(block, count, target);
  });
}

void Builder::gather_and_reduce(const Group& group, Range range, bool completes, uint8_t channel) {
  const uint32_t size = group.size();
  if (size == 1 && completes) settle(range, true);
  if (size == 1) return;
  for_each_run(range, [&](uint32_t block, uint32_t count) {
    const uint32_t slots = new_scratch(size * count);
    copy(unify(block, count), {Buffer::Scratch, slots + group.me * count}, block, count);
    for (uint32_t k = 1; k < size; ++k) {
      const uint32_t from = (group.me + size - k) % size;
      receive_into(group.rank(from), {Buffer::Scratch, slots + from * count}, block, count, channel);
    }
    const Location target = target_of(block, completes);
    reduce(slots, size, target, block, count, completes);
    set_home(block, count, target);
  });
}

void Builder::settle(Range range, bool completes) {
  for_each_run(range, [&](uint32_t block, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      const Location home = homes_[block + i];
      const Location target = target_of(block + i, true);
      if (home.buffer == target.buffer && home.index == target.index) continue;
      Step* last = plan_.steps.empty() || i == 0 ? nullptr : &plan_.steps.back();
      if (last != nullptr && last->kind == StepKind::Copy && last->source_buffer == home.buffer &&
          last->source + last->count == home.index && last->target + last->count == target.index) {
        ++last->count;
      } else {
        copy(home, target, block + i, 1, completes);
      }
      homes_[block + i] = target;
    }
  });
}

}  // namespace ccom
