// SPDX-License-Identifier: Apache-2.0
#include "plan/program_world.h"

#include <algorithm>

namespace ccom {

namespace {

// Of a buffer of `units`; item_of(...unit). Only the unit of a vector has more than one slice.
std::vector<BlockAt> blocks(const Program& program, Rank rank, Buffer buffer, uint32_t units,
                            uint64_t (*item_of)(Collective, int, Rank, uint32_t)) {
  std::vector<BlockAt> found;
  for (uint32_t unit = 0; unit < units && program.collective != Collective::Barrier; ++unit) {
    const auto item = static_cast<uint32_t>(item_of(program.collective, program.nranks, rank, unit));
    for (uint32_t slice = 0; slice < program.slices; ++slice) {
      found.push_back({item * program.slices + slice, buffer, unit * program.slices + slice});
    }
  }
  return found;
}

}  // namespace

std::vector<BlockAt> input_blocks(const Program& program, Rank rank) {
  const uint32_t units = input_units(program.collective, program.nranks, rank == program.root);
  return blocks(program, rank, Buffer::Input, units, input_item);
}

std::vector<BlockAt> output_blocks(const Program& program, Rank rank) {
  const uint32_t units = output_units(program.collective, program.nranks, rank == program.root);
  return blocks(program, rank, Buffer::Output, units, output_item);
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
