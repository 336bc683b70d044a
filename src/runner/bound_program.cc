// SPDX-License-Identifier: Apache-2.0
#include "runner/bound_program.h"

#include <algorithm>
#include <span>

#include "algorithms/shape.h"
#include "kernels/scaled_blocks.h"

namespace ccom {
namespace {

constexpr size_t kBankAlignment = 128;

// Peers of a plan across are members of a group; tiles that use another lane have other channels.
class GroupChannels final : public ChannelSource {
 public:
  GroupChannels(ChannelSource& channels, std::span<const StageMember> members, int first)
      : channels_(channels), members_(members), first_(first) {}
  Result<ChannelRef> open(Rank member, int index) override {
    return channels_.open(members_[static_cast<size_t>(member)].rank, first_ + index);
  }

 private:
  ChannelSource& channels_;
  const std::span<const StageMember> members_;
  const int first_;
};

// Binds the stages to one tile.
class Binder {
 public:
  Binder(const CompiledProgram& compiled, const ProgramBinding& binding, ChannelSource& channels,
         const ProgramGeometry& geometry, size_t tile)
      : compiled_(compiled),
        program_(*compiled.program),
        binding_(binding),
        channels_(channels),
        geometry_(geometry),
        tile_(tile),
        shift_(tile * geometry.tile_elements(0)) {}

  Result<BoundStage> bind_stage(size_t index) {
    CCOM_TRY(check_types(index));
    switch (compiled_.stages[index].kind) {
      case CompiledStage::Kind::Copy: return bind_copies(index);
      case CompiledStage::Kind::Host: return bind_host(index);
      case CompiledStage::Kind::Messages: return bind_messages(index);
      default: return BoundStage{};
    }
  }

 private:
  // Programs of the planner convert what their calls have; those of a file may be bound to any call.
  Status check_types(size_t index) const {
    const Stage& stage = program_.stages[index];
    const DataType given = type_of(stage), gotten = data_type(stage.gets_type, binding_.type);
    const bool converts = given != gotten;
    if (converts ? can_convert(given, gotten) && !stage.completes : !stage.sums || is_legal(given, op_of(stage)))
      return {};
    return error(Code::InternalError, "%s: stage %zu does not serve %s of %s", program_.algorithm.c_str(), index,
                 std::string(name_of(binding_.op)).c_str(), std::string(name_of(binding_.type)).c_str());
  }

  // Offsets as in tile 0, in elements of a type, which the user's buffers have too.
  UnitAt find(const BlockAt& at, DataType type) const {
    switch (at.buffer) {
      case Buffer::Input: return {Memory::Input, geometry_.offset(tile_, at) - shift_};
      case Buffer::Output: return {Memory::Output, geometry_.offset(tile_, at) - shift_};
      default: return {Memory::Bank, at.index * geometry_.slot_bytes() / size_of(type)};
    }
  }
  size_t elements(uint32_t block, DataType type) const {
    return elements_for(type, geometry_.block_elements(tile_, block));
  }
  // Of a slice or unit in the user's whole vector, as in tile 0.
  size_t place_of(uint32_t slice) const { return geometry_.offset(tile_, {slice, Buffer::Input, slice}) - shift_; }
  // Of what the members of a group of several give and get.
  DataType type_of(const Stage& stage) const { return data_type(stage.gives_type, binding_.type); }

  BoundStage bind_copies(size_t index) const {
    const StageMember& member = *compiled_.member(index);
    const Stage& stage = program_.stages[index];
    const DataType given = type_of(stage), gotten = data_type(stage.gets_type, binding_.type);
    const std::vector<BlockAt>& gives = program_.gives(member);
    const auto bytes_at = [&](const BlockAt& at, DataType type) {
      const UnitAt found = find(at, type);
      return UnitAt{found.memory, found.offset * size_of(type)};
    };
    BoundStage bound{.type = given};
    for (const BlockAt& to : program_.gets(member)) {
      const auto from = std::ranges::find(gives, to.block, &BlockAt::block);
      bound.copies.push_back({.from = bytes_at(*from, given),
                              .to = bytes_at(to, gotten),
                              .elements = geometry_.block_elements(tile_, to.block),
                              .place = given != gotten ? place_of(to.block) : 0});
    }
    return bound;
  }

  Result<BoundStage> bind_messages(size_t index) const {
    const Stage& stage = program_.stages[index];
    const CompiledStage& part = compiled_.stages[index];
    const DataType type = type_of(stage);
    Binding units{.type = type, .op = op_of(stage), .unit_elements = geometry_.tile_elements(tile_)};
    if (stage.where == Stage::Where::All && program_.is_v) {
      units.input = units_of(Buffer::Input, part.plan->plan.input_units);
      units.output = units_of(Buffer::Output, part.plan->plan.output_units);
      size_t first = 0;
      for (uint32_t unit = 0; unit < binding_.units.lengths.size(); ++unit) {
        units.input_elements.push_back(elements(unit, type));
        if (stage.sums) units.firsts.push_back(first);
        first += binding_.units.lengths[unit];
      }
      units.output_elements = units.input_elements;
    } else if (stage.where == Stage::Where::All || stage.collective == Collective::Barrier) {
      units.input = units_in_row(Memory::Input, part.plan->plan.input_units, binding_.count);
      units.output = units_in_row(Memory::Output, part.plan->plan.output_units, binding_.count);
      const size_t summed = is_per_rank(stage.collective) ? static_cast<size_t>(program_.nranks) : 1;
      for (size_t unit = 0; stage.sums && unit < summed; ++unit) units.firsts.push_back(unit * binding_.count);
    } else {
      CCOM_TRY(find_units(index, units));
      const bool is_blocks = stage.messages.kind == MessageAlgorithm::Kind::Blocks;
      for (const BlockAt& at : program_.gets(*compiled_.member(index))) {
        if (!stage.sums || !is_blocks) break;
        units.firsts.push_back(place_of(at.block));
      }
    }
    BoundStage bound{.type = type, .encoded = encoded_in(index)};
    const int lanes = stage.where == Stage::Where::All ? 1 : program_.lanes;
    for (int lane = 0; lane < lanes; ++lane) {
      GroupChannels channels(channels_, members_of(index), lane * channels_of(stage.messages));
      ChannelSource& source = stage.where == Stage::Where::All ? channels_ : channels;
      CCOM_TRY_ASSIGN(BoundPlan plan, ccom::bind(part.plan, units, source));
      bound.plans.push_back(std::make_shared<const BoundPlan>(std::move(plan)));
    }
    return bound;
  }

  // Where everybody combines everything (an allreduce core), the first member counts.
  BoundStage::Encoded encoded_in(size_t index) const {
    const Stage& stage = program_.stages[index];
    const bool sums_blocks = stage.sums && is_block(type_of(stage));
    const bool is_shared =
        stage.messages.kind == MessageAlgorithm::Kind::Staged && !stage.messages.staged.levels.empty();
    if (!sums_blocks || (!is_shared && compiled_.stages[index].member != 0)) return {};
    const uint32_t block = program_.gets(*compiled_.member(index)).front().block;
    return {place_of(block), geometry_.block_elements(tile_, block)};
  }

  std::span<const StageMember> members_of(size_t index) const {
    const Stage& stage = program_.stages[index];
    if (stage.groups.empty()) return {};
    return stage.groups[compiled_.stages[index].group];
  }

  std::vector<UnitAt> units_of(Buffer buffer, uint32_t units) const {
    std::vector<UnitAt> found;
    for (uint32_t unit = 0; unit < units; ++unit) found.push_back(find({unit, buffer, unit}, binding_.type));
    return found;
  }

  // Blocks of a stage of messages are equally long, but for v-forms and where plans are made for others.
  Status find_units(size_t index, Binding& units) const {
    const StageMember& member = *compiled_.member(index);
    const bool is_unequal = compiled_.stages[index].plan->plan.has_unequal_units;
    const DataType type = units.type;
    if (is_unequal) units.unit_elements = elements(0, type);
    if (is_unequal || program_.is_v) {
      find_unequal_units(program_.gives(member), type, units.input, units.input_elements);
      find_unequal_units(program_.gets(member), type, units.output, units.output_elements);
      return {};
    }
    bool first = true;
    for (const auto& [list, found] :
         {std::pair(&program_.gives(member), &units.input), std::pair(&program_.gets(member), &units.output)}) {
      for (const BlockAt& at : *list) {
        found->push_back(find(at, type));
        if (!first && elements(at.block, type) != units.unit_elements) {
          return error(Code::InternalError, "%s: in stage %zu blocks of rank %d differ in length",
                       program_.algorithm.c_str(), index, member.rank);
        }
        units.unit_elements = elements(at.block, type);
        first = false;
      }
    }
    // Who gives and gets nothing here may still pass on what others do.
    if (first) units.unit_elements = elements(first_block(index), type);
    return {};
  }

  void find_unequal_units(const std::vector<BlockAt>& list, DataType type, std::vector<UnitAt>& found,
                          std::vector<size_t>& lengths) const {
    for (const BlockAt& at : list) {
      found.push_back(find(at, type));
      lengths.push_back(elements(at.block, type));
    }
  }

  uint32_t first_block(size_t index) const {
    for (const StageMember& member : members_of(index)) {
      for (const std::vector<BlockAt>* list : {&program_.gives(member), &program_.gets(member)}) {
        if (!list->empty()) return list->front().block;
      }
    }
    return 0;
  }

  BoundStage bind_host(size_t index) const {
    const StageMember& member = *compiled_.member(index);
    auto views = std::make_unique<NodeViews>();
    const DataType type = type_of(program_.stages[index]);
    const bool completes = program_.stages[index].completes, divides = binding_.op == ReduceOp::Avg && completes;
    BoundStage bound{.type = type, .kept = std::make_unique<BoundCall>()};
    bound.host = {.task = compiled_.stages[index].task.get(),
                  .bound = bound.kept.get(),
                  .type = type,
                  .op = op_of(program_.stages[index]),
                  .divide_by = divides ? static_cast<uint32_t>(program_.nranks) : 0,
                  .in_place = compiled_.stages[index].in_place};
    bool in_row = true;
    uint32_t blocks = 0;
    const auto view = [&](const std::vector<BlockAt>& list) {
      std::vector<int64_t> offsets;
      for (const BlockAt& at : list) {
        in_row &= !program_.is_v && find(at, type).offset == offsets.size() * elements(0, type) &&
                  elements(at.block, type) == elements(0, type);
        blocks = std::max(blocks, at.block + 1);
        offsets.push_back(static_cast<int64_t>(find(at, type).offset * size_of(type)));
        bound.host.count = std::max(bound.host.count, elements(at.block, type));
      }
      return offsets;
    };
    for (const StageMember& other : members_of(index)) {
      views->given.push_back(view(program_.gives(other)));
      views->got.push_back(view(program_.gets(other)));
    }
    if (!program_.gives(member).empty()) bound.input = find(program_.gives(member)[0], type).memory;
    if (!program_.gets(member).empty()) bound.output = find(program_.gets(member)[0], type).memory;
    if (in_row) return bound;
    if (program_.slices > 1 || program_.is_v) {
      for (uint32_t block = 0; block < blocks; ++block) views->block_elements.push_back(elements(block, type));
    }
    bound.host.views = views.get();
    bound.views = std::move(views);
    return bound;
  }

  // An average divides once.
  ReduceOp op_of(const Stage& stage) const {
    return binding_.op == ReduceOp::Avg && !stage.completes ? ReduceOp::Sum : binding_.op;
  }

  const CompiledProgram& compiled_;
  const Program& program_;
  const ProgramBinding& binding_;
  ChannelSource& channels_;
  const ProgramGeometry& geometry_;
  const size_t tile_;
  const size_t shift_;
};

}  // namespace

Result<std::shared_ptr<const BoundProgram>> bind(std::shared_ptr<const CompiledProgram> compiled,
                                                 const ProgramBinding& binding, ChannelSource& channels) {
  const Program& program = *compiled->program;
  const size_t element_bytes = size_of(binding.type);
  const ProgramGeometry geometry = program.is_v ? ProgramGeometry(program, binding.units, element_bytes)
                                                : ProgramGeometry(program, binding.count, element_bytes);
  auto bound = std::make_shared<BoundProgram>();
  bound->compiled = std::move(compiled);
  bound->binding = binding;
  bound->tile_bytes = geometry.tile_elements(0) * element_bytes;
  bound->bank_bytes = (geometry.scratch_bytes() + kBankAlignment - 1) / kBankAlignment * kBankAlignment;
  bound->order = order_of(program, geometry.tiles());
  for (size_t tile = 0; tile < geometry.tiles(); ++tile) {
    if (tile > 0 && geometry.are_alike(tile, tile - 1)) continue;
    bound->first_tiles.push_back(static_cast<uint32_t>(tile));
    Binder binder(*bound->compiled, binding, channels, geometry, tile);
    std::vector<BoundStage>& stages = bound->kinds.emplace_back();
    for (size_t stage = 0; stage < program.stages.size(); ++stage) {
      CCOM_TRY_ASSIGN(BoundStage made, binder.bind_stage(stage));
      for (const auto& plan : made.plans) bound->scratch_bytes = std::max(bound->scratch_bytes, plan->scratch_bytes);
      stages.push_back(std::move(made));
    }
  }
  bound->scratch_bytes *= std::min(geometry.tiles(), program.is_messages() ? 1 : kTilesUnderWay);
  return std::shared_ptr<const BoundProgram>(std::move(bound));
}

}  // namespace ccom
