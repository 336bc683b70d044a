// SPDX-License-Identifier: Apache-2.0
#include "plan/program_world.h"

#include <algorithm>

namespace ccom {

// Of a buffer of `units`; item_of(unit). Only the unit of a vector has more than one slice.
template <typename ItemOf>
std::vector<BlockAt> ProgramSpec::blocks(Buffer buffer, uint32_t units, ItemOf item_of) const {
  std::vector<BlockAt> found;
  for (uint32_t unit = 0; unit < units && program_.collective != Collective::Barrier; ++unit) {
    for (uint32_t slice = 0; slice < program_.slices; ++slice) {
      found.push_back({item_of(unit) * program_.slices + slice, buffer, unit * program_.slices + slice});
    }
  }
  return found;
}

std::vector<BlockAt> ProgramSpec::inputs(Rank rank) const {
  const Collective collective = program_.collective;
  return blocks(Buffer::Input, input_units(collective, program_.nranks, rank == program_.root), [&](uint32_t unit) {
    return static_cast<uint32_t>(input_item(collective, program_.nranks, rank, unit));
  });
}

std::vector<BlockAt> ProgramSpec::outputs(Rank rank) const {
  const Collective collective = program_.collective;
  return blocks(Buffer::Output, output_units(collective, program_.nranks, rank == program_.root), [&](uint32_t unit) {
    return static_cast<uint32_t>(output_item(collective, program_.nranks, rank, unit));
  });
}

Value ProgramSpec::contribution(Rank rank, uint32_t block, size_t tile) const {
  return leaf(mix(mix(static_cast<uint64_t>(rank) << 32 | tile) + block) % kPrime, block);
}

std::vector<Rank> ProgramSpec::contributors(uint32_t block) const {
  if (!sums()) return {source_of(program_.collective, program_.nranks, program_.root, block / program_.slices)};
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < program_.nranks; ++rank) ranks.push_back(rank);
  return ranks;
}

std::string ProgramSpec::what_is_wrong(uint32_t block, size_t tile, uint64_t sum) const {
  uint64_t expected = 0;
  for (const Rank rank : contributors(block)) expected = add_mod(expected, contribution(rank, block, tile).sum);
  for (const Rank rank : contributors(block)) {
    const uint64_t word = contribution(rank, block, tile).sum;
    if (add_mod(sum, word) == expected) return "lacks the contribution of rank " + std::to_string(rank);
    if (add_mod(expected, word) == sum) return "holds the contribution of rank " + std::to_string(rank) + " twice";
  }
  return "does not hold each rank's contribution once";
}

ProgramMemory::Key ProgramMemory::key(Rank rank, size_t tile, const BlockAt& at) const {
  const BlockAt where = resolve(program_, rank, at, in_place(rank));
  return {rank, where.buffer, where.buffer == Buffer::Scratch ? tile % kTilesUnderWay : tile, where.index};
}

std::optional<Value> ProgramMemory::load(Rank rank, size_t tile, const BlockAt& at) const {
  const auto found = cells_.find(key(rank, tile, at));
  return found == cells_.end() ? std::nullopt : found->second.value;
}

void ProgramMemory::store(Rank rank, size_t tile, const BlockAt& at, const std::optional<Value>& value) {
  cells_[key(rank, tile, at)].value = value;
}

void ProgramMemory::lock(Rank rank, size_t tile, const BlockAt& at, bool writes) {
  Cell& cell = cells_[key(rank, tile, at)];
  ++(writes ? cell.writers : cell.readers);
}

void ProgramMemory::unlock(Rank rank, size_t tile, const BlockAt& at, bool writes) {
  Cell& cell = cells_[key(rank, tile, at)];
  --(writes ? cell.writers : cell.readers);
}

bool ProgramMemory::may_read(Rank rank, size_t tile, const BlockAt& at) const {
  const auto found = cells_.find(key(rank, tile, at));
  return found == cells_.end() || found->second.writers == 0;
}

bool ProgramMemory::may_write(Rank rank, size_t tile, const BlockAt& at) const {
  const auto found = cells_.find(key(rank, tile, at));
  return found == cells_.end() || found->second.writers + found->second.readers == 0;
}

}  // namespace ccom
