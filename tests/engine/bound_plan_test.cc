// SPDX-License-Identifier: Apache-2.0
//
// From blocks to bytes: where the steps of a plan lead once it is known where its units lie.
#include "engine/bound_plan.h"

#include <gtest/gtest.h>

#include <array>

namespace ccom {
namespace {

class NoChannels final : public ChannelSource {
 public:
  Result<ChannelRef> open(Rank, int) override { return ChannelRef{}; }
};

// Two units of two blocks: the first step copies block 3, the second `count` blocks from block 1 on.
std::shared_ptr<const CompiledPlan> two_copies(uint32_t count) {
  Plan plan;
  plan.algorithm = "copies";
  plan.blocks_per_unit = 2;
  plan.input_units = plan.output_units = 2;
  plan.steps.push_back({.kind = StepKind::Copy, .source = 3, .target = 2, .count = 1, .block = 3});
  plan.steps.push_back({.kind = StepKind::Copy, .source = 1, .target = 1, .count = count, .block = 1});
  return std::make_shared<const CompiledPlan>(std::move(plan));
}

TEST(BoundPlan, UnitsMayLieApart) {
  NoChannels channels;
  Binding binding{.unit_elements = 10};  // blocks of 5 elements, 20 bytes
  binding.input = {{Memory::Input, 100}, {Memory::Bank, 1000}};
  binding.output = {{Memory::Output, 7}, {Memory::Output, 300}};
  const Result<BoundPlan> bound = ccom::bind(two_copies(1), binding, channels);
  ASSERT_TRUE(bound) << bound.error().message();
  EXPECT_EQ(bound->steps[0].source_memory, Memory::Bank);
  EXPECT_EQ(bound->steps[0].source, 4U * 1005);
  EXPECT_EQ(bound->steps[0].target_memory, Memory::Output);
  EXPECT_EQ(bound->steps[0].target, 4U * 300);
  EXPECT_EQ(bound->steps[0].size_bytes, 20U);
  EXPECT_EQ(bound->steps[1].source_memory, Memory::Input);
  EXPECT_EQ(bound->steps[1].source, 4U * 105);
}

TEST(BoundPlan, AStepCoversUnitsOnlyWhereTheyFollowOneAnother) {
  NoChannels channels;
  Binding binding{.unit_elements = 10};
  binding.input = units_in_row(Memory::Input, 2, 10);
  binding.output = units_in_row(Memory::Output, 2, 10);
  const Result<BoundPlan> in_row = ccom::bind(two_copies(2), binding, channels);
  ASSERT_TRUE(in_row) << in_row.error().message();
  EXPECT_EQ(in_row->steps[1].size_bytes, 40U);
  binding.output = units_in_row(Memory::Output, 2, 11);
  const Result<BoundPlan> apart = ccom::bind(two_copies(2), binding, channels);
  ASSERT_FALSE(apart);
  EXPECT_NE(apart.error().message().find("which lie apart"), std::string::npos) << apart.error().message();
}

TEST(BoundPlan, AStepBeyondTheUnitsIsRefused) {
  NoChannels channels;
  Binding binding{.unit_elements = 10};
  binding.input = units_in_row(Memory::Input, 1, 10);
  binding.output = units_in_row(Memory::Output, 2, 10);
  EXPECT_FALSE(ccom::bind(two_copies(1), binding, channels));
}

// Two units of two blocks, 3 and 2 elements, by position: first blocks before second ones.
TEST(BoundPlan, APermutationMovesAsFewRunsAsThereAre) {
  Plan plan;
  plan.algorithm = "columns";
  plan.collective = Collective::AllToAll;
  plan.nranks = 2;
  plan.blocks_per_unit = 2;
  plan.input_units = plan.output_units = 2;
  plan.scratch_slots = 4;
  plan.order = NumberList({0, 2, 1, 3});
  plan.stretches = {{0, 0}};
  plan.permutations = {NumberList({0, 2, 1, 3})};
  plan.steps.push_back({.kind = StepKind::Permute, .target_buffer = Buffer::Scratch, .count = 4});
  plan.steps.push_back({.kind = StepKind::Permute, .source_buffer = Buffer::Scratch, .count = 4});
  NoChannels channels;
  Binding binding{.unit_elements = 5};
  binding.input = {{Memory::Input, 100}, {Memory::Input, 200}};
  binding.output = units_in_row(Memory::Output, 2, 5);
  const Result<BoundPlan> bound = ccom::bind(std::make_shared<const CompiledPlan>(plan), binding, channels);
  ASSERT_TRUE(bound) << bound.error().message();
  EXPECT_EQ(bound->scratch_bytes, 4U * 10);
  ASSERT_EQ(bound->moves.size(), 8U);
  const std::array<std::array<size_t, 3>, 8> expected{
      {{100, 0, 3}, {200, 3, 3}, {103, 6, 2}, {203, 8, 2}, {0, 0, 3}, {6, 3, 2}, {3, 5, 3}, {8, 8, 2}}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const BoundMove& move = bound->moves[i];
    EXPECT_EQ((std::array{move.source / 4, move.target / 4, move.size_bytes / 4}), expected[i]) << i;
    EXPECT_EQ(move.source_memory, i < 4 ? Memory::Input : Memory::Scratch);
  }
  plan.permutations = {NumberList({0, 1, 2, 3})};
  plan.order = NumberList({0, 1, 2, 3});
  const Result<BoundPlan> straight = ccom::bind(std::make_shared<const CompiledPlan>(plan), binding, channels);
  ASSERT_TRUE(straight) << straight.error().message();
  EXPECT_EQ(straight->steps[0].moves, 2U) << "the two units of the input lie apart";
  EXPECT_EQ(straight->steps[1].moves, 1U);
}

// Slices of a vector, the last of them shorter: a send is as long as a unit of the input, a copy as one of the output.
TEST(BoundPlan, UnitsMayDifferInLength) {
  Plan plan;
  plan.algorithm = "slices";
  plan.nranks = 2;
  plan.has_unequal_units = true;
  plan.input_units = 3;
  plan.output_units = 2;
  plan.steps.push_back({.kind = StepKind::Send, .peer = 1, .source = 2, .count = 1, .block = 2});
  plan.steps.push_back({.kind = StepKind::Copy, .source = 0, .target = 0, .count = 2, .block = 0});
  const auto compiled = std::make_shared<const CompiledPlan>(plan);
  NoChannels channels;
  Binding binding{.unit_elements = 10};
  binding.input = {{Memory::Input, 0}, {Memory::Input, 10}, {Memory::Input, 20}};
  binding.input_elements = {10, 10, 4};
  binding.output = {{Memory::Output, 0}, {Memory::Output, 10}};
  EXPECT_FALSE(ccom::bind(compiled, binding, channels)) << "without the lengths of the output";
  binding.output_elements = {10, 7};
  const Result<BoundPlan> bound = ccom::bind(compiled, binding, channels);
  ASSERT_TRUE(bound) << bound.error().message();
  EXPECT_EQ(bound->steps[0].source, 4U * 20);
  EXPECT_EQ(bound->steps[0].size_bytes, 4U * 4);
  EXPECT_EQ(bound->steps[1].size_bytes, 4U * 17);
  binding.input_elements = {9, 10, 4};
  EXPECT_FALSE(ccom::bind(compiled, binding, channels)) << "units of the copy's source lie apart";
}

}  // namespace
}  // namespace ccom
