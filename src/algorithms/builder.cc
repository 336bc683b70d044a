// SPDX-License-Identifier: Apache-2.0
#include "algorithms/builder.h"

#include <algorithm>
#include <optional>

#include "base/assert.h"

namespace ccom {

Builder::Builder(Plan plan, const std::vector<uint32_t>& block_of_position)
    : StepWriter(std::move(plan)),
      order_(runs_of(block_of_position)),
      blocks_(std::max(plan_.input_blocks(), plan_.output_blocks())),
      homes_(blocks_, {}) {
  CCOM_ASSERT(plan_.rank >= 0 && plan_.rank < plan_.nranks && plan_.blocks_per_unit > 0);
  CCOM_ASSERT(block_of_position.empty() || block_of_position.size() == blocks_);
  const bool gathers = plan_.output_units > plan_.input_units;
  const uint32_t own = gathers ? static_cast<uint32_t>(plan_.rank) * plan_.blocks_per_unit : 0;
  if (plan_.input_units > 0) homes_.assign(own, plan_.input_blocks(), {Buffer::Input, 0});
}

Builder::Builder(Plan plan, const std::vector<Range>& own)
    : StepWriter(std::move(plan)), order_{{0, 0}}, blocks_(plan_.order.size()), homes_(blocks_, {Buffer::Scratch, 0}) {
  CCOM_ASSERT(!plan_.order.empty() && blocks_ == std::max(plan_.input_blocks(), plan_.output_blocks()));
  partial_slots_ = new_scratch(blocks_);
  if (scatters()) {
    permute({Buffer::Input, 0}, {Buffer::Scratch, 0}, 0, plan_.order);
    return;
  }
  for (const Range& range : own) {
    copy({Buffer::Input, plan_.within_unit(range.first)}, {Buffer::Scratch, range.first}, range.first, range.count);
  }
}

void Builder::bring_output(const NumberList& position_of_block) {
  permute({Buffer::Scratch, 0}, {Buffer::Output, 0}, 0, position_of_block);
}

std::vector<Builder::OrderRun> Builder::runs_of(const std::vector<uint32_t>& block_of_position) {
  std::vector<OrderRun> runs{{0, 0}};
  for (uint32_t p = 0; p < block_of_position.size(); ++p) {
    const uint32_t block = block_of_position[p];
    if (p == 0) runs[0].block = block;
    if (block != runs.back().block + (p - runs.back().position)) runs.push_back({p, block});
  }
  return runs;
}

std::vector<Builder::OrderRun>::const_iterator Builder::run_at(uint32_t position) const {
  return std::prev(std::ranges::upper_bound(order_, position, {}, &OrderRun::position));
}

Location Builder::target_of(uint32_t block, bool completes) {
  const bool has_order = !plan_.order.empty();
  if (!scatters() && !has_order) return {Buffer::Output, block};
  if (completes && scatters()) {
    const uint32_t own = static_cast<uint32_t>(plan_.rank) * plan_.blocks_per_unit;
    return {Buffer::Output, (has_order ? plan_.order[block] : block) - own};
  }
  if (partial_slots_ == UINT32_MAX) partial_slots_ = new_scratch(blocks_);
  return {Buffer::Scratch, partial_slots_ + block};
}

uint32_t StepWriter::new_scratch(uint32_t slots, uint32_t position) {
  if (!plan_.order.empty() && slots > 0) plan_.stretches.push_back({plan_.scratch_slots, position});
  plan_.scratch_slots += slots;
  return plan_.scratch_slots - slots;
}

void StepWriter::copy(Location source, Location target, uint32_t block, uint32_t count, bool completes) {
  add({.kind = StepKind::Copy,
       .source_buffer = source.buffer,
       .target_buffer = target.buffer,
       .completes = completes,
       .source = source.index,
       .target = target.index,
       .count = count,
       .block = block});
}

void StepWriter::pack(std::span<const Location> sources, Location target) {
  for (uint32_t first = 0; first < sources.size();) {
    uint32_t run = 1;
    while (first + run < sources.size() && sources[first + run] == sources[first].at(run)) ++run;
    copy(sources[first], target.at(first), 0, run);
    first += run;
  }
}

void StepWriter::send_from(Rank peer, Location source, uint32_t block, uint32_t count, uint8_t channel,
                           uint8_t egress) {
  CCOM_ASSERT(is_peer(peer));
  add({.kind = StepKind::Send,
       .source_buffer = source.buffer,
       .channel = channel,
       .egress = egress,
       .peer = peer,
       .source = source.index,
       .count = count,
       .block = block});
}

void StepWriter::receive_into(Rank peer, Location target, uint32_t block, uint32_t count, uint8_t channel) {
  CCOM_ASSERT(is_peer(peer));
  add({.kind = StepKind::Receive,
       .target_buffer = target.buffer,
       .channel = channel,
       .peer = peer,
       .target = target.index,
       .count = count,
       .block = block});
}

void StepWriter::receive_reduce_into(Rank peer, Location own, Location target, uint32_t block, uint32_t count,
                                     bool completes, uint8_t channel) {
  CCOM_ASSERT(is_peer(peer));
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
}

void StepWriter::permute(Location source, Location target, uint32_t position, const NumberList& permutation) {
  const auto known = std::ranges::find(plan_.permutations, permutation);
  const auto index = static_cast<uint16_t>(known - plan_.permutations.begin());
  if (known == plan_.permutations.end()) plan_.permutations.push_back(permutation);
  add({.kind = StepKind::Permute,
       .source_buffer = source.buffer,
       .target_buffer = target.buffer,
       .inputs = index,
       .source = source.index,
       .target = target.index,
       .count = permutation.size(),
       .block = position});
}

void StepWriter::reduce(uint32_t first_slot, uint32_t inputs, Location target, uint32_t block, uint32_t count,
                        bool completes) {
  CCOM_ASSERT(inputs > 0 && inputs <= UINT16_MAX);
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

void Builder::set_home(uint32_t block, uint32_t count, Location home) { homes_.assign(block, count, home); }

Location Builder::unify(uint32_t block, uint32_t count) {
  std::optional<Location> first;
  bool together = true;
  uint32_t runs = 0;
  homes_.visit(block, count, [&](uint32_t at, uint32_t, Location home) {
    ++runs;
    if (!first) first = home;
    return together = home == first->at(at - block);
  });
  if (together) {
    if (runs > 1) set_home(block, count, *first);  // never look at the parts again
    return *first;
  }
  const Location target = target_of(block, false);
  homes_.visit(block, count, [&](uint32_t at, uint32_t length, Location home) {
    const Location to = target.at(at - block);
    if (home != to) copy(home, to, at, length);
    return true;
  });
  set_home(block, count, target);
  return target;
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
    receive_reduce_into(peer, own, target, block, count, completes, channel);
    set_home(block, count, target);
  });
}

void Builder::gather_and_reduce(const Group& group, Range range, bool completes, uint8_t channel) {
  const uint32_t size = group.size();
  if (size == 1 && completes) settle(range, true);
  if (size == 1) return;
  for_each_run(range, [&](uint32_t block, uint32_t count) {
    const uint32_t slots = new_scratch(count, block);
    for (uint32_t k = 1; k < size; ++k) new_scratch(count, block);
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
    const Location target = target_of(block, true);
    homes_.visit(block, count, [&](uint32_t at, uint32_t length, Location home) {
      const Location to = target.at(at - block);
      if (home == to) return true;
      Step* last = plan_.steps.empty() || at == block ? nullptr : &plan_.steps.back();
      if (last != nullptr && last->kind == StepKind::Copy && last->source_buffer == home.buffer &&
          last->source + last->count == home.index && last->target + last->count == to.index) {
        last->count += length;
      } else {
        copy(home, to, at, length, completes);
      }
      return true;
    });
    set_home(block, count, target);
  });
}

}  // namespace ccom
