// SPDX-License-Identifier: Apache-2.0
#include "plan/program.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"

namespace ccom {

uint32_t Program::add_list(std::vector<BlockAt> list) {
  const auto found = std::ranges::find(lists, list);
  const auto index = static_cast<uint32_t>(found - lists.begin());
  if (found == lists.end()) lists.push_back(std::move(list));
  return index;
}

UnitType Program::wire() const {
  const auto found = std::ranges::find_if(stages, [](const Stage& stage) {
    return stage.where == Stage::Where::Across && stage.gives_type != UnitType::Call;
  });
  return found == stages.end() ? UnitType::Call : found->gives_type;
}

namespace {

// The stages of a program in rows that end with the start of messages; the next row begins with their end.
std::vector<std::vector<uint32_t>> rows_of(const Program& program) {
  std::vector<std::vector<uint32_t>> rows(1);
  for (uint32_t stage = 0; stage < program.stages.size(); ++stage) {
    rows.back().push_back(stage);
    if (program.stages[stage].where == Stage::Where::Across) rows.emplace_back();
  }
  return rows;
}

}  // namespace

std::vector<Part> order_of(const Program& program, size_t tiles) {
  const auto rows = rows_of(program);
  // Each row of a tile runs so many tiles after the row before it that at most kTilesUnderWay tiles are between their
  // first and their last part.
  const size_t gaps = rows.size() - 1;
  const size_t ahead = gaps == 0 ? 0 : std::max<size_t>((kTilesUnderWay - 1) / gaps, 1);
  CCOM_ASSERT(ahead * gaps < kTilesUnderWay);
  std::vector<Part> order;
  for (size_t step = 0; step < tiles + ahead * gaps; ++step) {
    for (size_t row = 0; row < rows.size(); ++row) {
      if (step < row * ahead || step - row * ahead >= tiles) continue;
      const auto tile = static_cast<uint32_t>(step - row * ahead);
      if (row > 0) order.push_back({Part::Kind::Finish, tile, rows[row - 1].back()});
      for (const uint32_t stage : rows[row]) {
        const bool starts = program.stages[stage].where == Stage::Where::Across;
        order.push_back({starts ? Part::Kind::Start : Part::Kind::Run, tile, stage});
      }
    }
  }
  return order;
}

NodeTask node_task(const Program& program, const Stage& stage, size_t group) {
  const std::vector<StageMember>& members = stage.groups[group];
  NodeTask task{.collective = stage.collective,
                .nranks = static_cast<int>(members.size()),
                .root = stage.root,
                .sums = stage.sums,
                .completes = stage.completes,
                .blocks = {}};
  const auto blocks_of = [](const std::vector<BlockAt>& list) {
    std::vector<uint32_t> blocks;
    for (const BlockAt& at : list) blocks.push_back(at.block);
    return blocks;
  };
  for (const StageMember& member : members) {
    const auto local_rank = static_cast<Rank>(task.blocks.gives.size());
    task.blocks.gives.push_back(blocks_of(program.gives(member)));
    task.blocks.gets.push_back(blocks_of(program.gets(member)));
    const bool gives_alone = task.collective == Collective::Broadcast && !task.blocks.gives.back().empty();
    const bool gets_alone = task.collective == Collective::Reduce && !task.blocks.gets.back().empty();
    if (gives_alone || gets_alone) task.root = local_rank;
  }
  return task;
}

BlockAt resolve(const Program& program, Rank rank, const BlockAt& at, bool in_place) {
  if (!in_place || at.buffer != Buffer::Input) return at;
  const uint32_t outputs = output_units(program.collective, program.nranks, rank == program.root) * program.slices;
  const int64_t index = at.index + in_place_shift(program.collective, rank);
  if (index < 0 || index >= outputs) return at;
  return {at.block, Buffer::Output, static_cast<uint32_t>(index)};
}

bool is_in_place(const Program& program, const StageMember& member, bool in_place) {
  return std::ranges::any_of(program.gives(member), [&](const BlockAt& given) {
    const std::vector<BlockAt>& gets = program.gets(member);
    const auto gotten = std::ranges::find(gets, given.block, &BlockAt::block);
    return gotten != gets.end() &&
           resolve(program, member.rank, given, in_place) == resolve(program, member.rank, *gotten, in_place);
  });
}

StagePlace find_member(const Stage& stage, Rank rank) {
  for (size_t group = 0; group < stage.groups.size(); ++group) {
    const auto found = std::ranges::find(stage.groups[group], rank, &StageMember::rank);
    if (found == stage.groups[group].end()) continue;
    return {static_cast<int>(group), static_cast<int>(found - stage.groups[group].begin())};
  }
  return {};
}

// ---- Geometry -------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kRoundFromLines = 16;  // shorter slices: an even spread matters more than alignment

// Of a slot with so many elements of the call, in whatever type a stage has them there.
size_t slot_bytes_of(const Program& program, size_t elements, size_t element_bytes) {
  size_t most = elements * element_bytes, granule = 1;
  for (const Stage& stage : program.stages) {
    for (const UnitType type : {stage.gives_type, stage.gets_type}) {
      if (type == UnitType::Call) continue;
      const DataType held = data_type(type, DataType::Float32);
      most = std::max(most, elements_for(held, elements) * size_of(held));
      granule = std::lcm(granule, std::lcm(size_of(held), kLineBytes));
    }
  }
  return (most + granule - 1) / granule * granule;
}

}  // namespace

ProgramGeometry::ProgramGeometry(const Program& program, size_t count, size_t element_bytes)
    : count_(count),
      slices_(program.slices),
      slots_(program.scratch_slots),
      line_(std::max<size_t>(kLineBytes / element_bytes, 1)),
      is_vector_(!is_per_rank(program.collective)) {
  CCOM_ASSERT(program.slices >= 1 && (is_vector_ || program.slices == 1));
  most_ = program.tile_bytes == 0 ? count : std::min(count, std::max<size_t>(program.tile_bytes / element_bytes, 1));
  if (count > 0) tiles_ = (count + most_ - 1) / most_;
  slot_bytes_ = slot_bytes_of(program, is_vector_ ? slice_elements(0) : tile_elements(0), element_bytes);
}

ProgramGeometry::ProgramGeometry(const Program& program, const UnitLayout& layout, size_t element_bytes)
    : ProgramGeometry(program, layout.longest(), element_bytes) {
  CCOM_ASSERT(program.is_v && !is_vector_ && layout.lengths.size() == static_cast<size_t>(program.nranks) &&
              layout.begins.size() == layout.lengths.size());
  layout_ = &layout;
  larger_ = input_is_per_rank(program.collective) ? Buffer::Input : Buffer::Output;
}

size_t UnitLayout::longest() const { return lengths.empty() ? 0 : std::ranges::max(lengths); }

size_t ProgramGeometry::tile_elements(size_t tile) const { return std::min(most_, count_ - tile * most_); }

bool ProgramGeometry::are_alike(size_t tile, size_t other) const {
  if (layout_ == nullptr) return tile_elements(tile) == tile_elements(other);
  for (uint32_t block = 0; block < layout_->lengths.size(); ++block) {
    if (block_elements(tile, block) != block_elements(other, block)) return false;
  }
  return true;
}

size_t ProgramGeometry::slice_elements(size_t tile) const {
  const size_t slice = (tile_elements(tile) + slices_ - 1) / slices_;
  return slice >= kRoundFromLines * line_ ? (slice + line_ - 1) / line_ * line_ : slice;
}

size_t ProgramGeometry::block_elements(size_t tile, uint32_t block) const {
  if (layout_ != nullptr) {
    const size_t length = layout_->lengths[block];
    return std::min(most_, length - std::min(length, tile * most_));
  }
  if (!is_vector_) return tile_elements(tile);
  const size_t length = tile_elements(tile), slice = slice_elements(tile);
  return std::min(slice, length - std::min(length, block * slice));
}

size_t ProgramGeometry::offset(size_t tile, const BlockAt& at) const {
  CCOM_ASSERT(at.buffer != Buffer::Scratch);
  // In the smaller buffer a rank has its own unit alone, in the larger one all of them.
  if (layout_ != nullptr && at.buffer == larger_) return layout_->begins[at.index] + tile * most_;
  if (!is_vector_) return at.index * count_ + tile * most_;
  return tile * most_ + std::min(at.index * slice_elements(tile), tile_elements(tile));
}

}  // namespace ccom
