// SPDX-License-Identifier: Apache-2.0
#include "plan/program_world.h"

#include <algorithm>

namespace ccom {

std::vector<BlockAt> ProgramSpec::inputs(Rank rank) const {
  const auto own = static_cast<uint32_t>(rank);
  const auto n = static_cast<uint32_t>(program_.nranks);
  const bool is_root = rank == program_.root;
  std::vector<BlockAt> blocks;
  const auto add = [&](uint32_t block, uint32_t index) { blocks.push_back({block, Buffer::Input, index}); };
  switch (program_.collective) {
    case Collective::Broadcast:
      if (!is_root) break;
      [[fallthrough]];
    case Collective::AllReduce:
    case Collective::Reduce:
      for (uint32_t slice = 0; slice < program_.slices; ++slice) add(slice, slice);
      break;
    case Collective::AllGather:
    case Collective::Gather: add(own, 0); break;
    case Collective::Scatter:
      if (!is_root) break;
      [[fallthrough]];
    case Collective::ReduceScatter:
      for (uint32_t unit = 0; unit < n; ++unit) add(unit, unit);
      break;
    case Collective::AllToAll:
      for (uint32_t to = 0; to < n; ++to) add(own * n + to, to);
      break;
    default: break;
  }
  return blocks;
}

std::vector<BlockAt> ProgramSpec::outputs(Rank rank) const {
  const auto own = static_cast<uint32_t>(rank);
  const auto n = static_cast<uint32_t>(program_.nranks);
  const bool is_root = rank == program_.root;
  std::vector<BlockAt> blocks;
  const auto add = [&](uint32_t block, uint32_t index) { blocks.push_back({block, Buffer::Output, index}); };
  switch (program_.collective) {
    case Collective::Reduce:
      if (!is_root) break;
      [[fallthrough]];
    case Collective::AllReduce:
    case Collective::Broadcast:
      for (uint32_t slice = 0; slice < program_.slices; ++slice) add(slice, slice);
      break;
    case Collective::Gather:
      if (!is_root) break;
      [[fallthrough]];
    case Collective::AllGather:
      for (uint32_t unit = 0; unit < n; ++unit) add(unit, unit);
      break;
    case Collective::ReduceScatter:
    case Collective::Scatter: add(own, 0); break;
    case Collective::AllToAll:
      for (uint32_t from = 0; from < n; ++from) add(from * n + own, from);
      break;
    default: break;
  }
  return blocks;
}

bool ProgramSpec::sums() const {
  return program_.collective == Collective::AllReduce || program_.collective == Collective::Reduce ||
         program_.collective == Collective::ReduceScatter;
}

Value ProgramSpec::contribution(Rank rank, uint32_t block, size_t tile) const {
  return leaf(mix(mix(static_cast<uint64_t>(rank) << 32 | tile) + block) % kPrime, block);
}

std::vector<Rank> ProgramSpec::contributors(uint32_t block) const {
  std::vector<Rank> ranks;
  const auto n = static_cast<uint32_t>(program_.nranks);
  switch (program_.collective) {
    case Collective::Broadcast:
    case Collective::Scatter: return {program_.root};
    case Collective::AllGather:
    case Collective::Gather: return {static_cast<Rank>(block)};
    case Collective::AllToAll: return {static_cast<Rank>(block / n)};
    default:
      for (Rank rank = 0; rank < program_.nranks; ++rank) ranks.push_back(rank);
      return ranks;
  }
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
