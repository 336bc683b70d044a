// SPDX-License-Identifier: Apache-2.0
//
// From programs to what one rank does in them: its place in each stage, where its units lie in a tile, and which
// channels its messages take. How that runs is checked by processes (tests/processes).
#include "runner/bound_program.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/plan/program_shapes.h"

namespace ccom {
namespace {

class RecordedChannels final : public ChannelSource {
 public:
  Result<ChannelRef> open(Rank peer, int index) override {
    opened.insert({peer, index});
    return ChannelRef{.rank = peer};
  }
  std::set<std::pair<Rank, int>> opened;
};

// Hosts of 3 and 5 ranks, three slices, tiles of 64 KiB, four lanes.
std::shared_ptr<const Program> unequal_allreduce(int owners) {
  HierarchicalShape shape{.hosts = hosts_of({3, 5}), .owners = owners, .tile_bytes = size_t{64} << 10, .lanes = 4};
  shape.reduce_inside = shape.spread_inside = node_choice(NodeScheme::Direct);
  if (owners == 1) shape.reduce_inside = node_choice(NodeScheme::OneShot);
  shape.across = {.name = "one_shot", .staged = {.core = {flat_level(Pattern::OneShot, 2)}}};
  return std::make_shared<const Program>(hierarchical_program(Collective::AllReduce, -1, shape));
}

std::shared_ptr<const BoundProgram> bound(const std::shared_ptr<const Program>& program, Rank rank, size_t count,
                                          ChannelSource& channels) {
  auto compiled = compile(program, rank, false);
  EXPECT_TRUE(compiled) << compiled.error().message();
  auto result = ccom::bind(*compiled, {.count = count}, channels);
  EXPECT_TRUE(result) << result.error().message();
  return *result;
}

TEST(BoundProgram, OwnersExchangeWithTheSameLocalRankOnALaneOfTheTile) {
  RecordedChannels channels;
  const auto program = bound(unequal_allreduce(3), 1, 100000, channels);
  EXPECT_EQ(channels.opened, (std::set<std::pair<Rank, int>>{{4, 0}, {4, 1}, {4, 2}, {4, 3}}));
  ASSERT_EQ(program->kinds.size(), 2U);
  ASSERT_EQ(program->kinds[0].size(), 3U);
  EXPECT_EQ(program->compiled->stages[1].kind, CompiledStage::Kind::Messages);
  EXPECT_EQ(program->kinds[0][1].plans.size(), 4U);
  EXPECT_EQ(program->first_tiles, (std::vector<uint32_t>{0, 6}));  // of 16384 elements
  EXPECT_EQ(program->tile_bytes, size_t{64} << 10);
  EXPECT_EQ(program->order.size(), 7U * 4);  // inside, start, finish, inside
}

TEST(BoundProgram, WhoOwnsNothingHasNoPartAcross) {
  RecordedChannels channels;
  const auto program = bound(unequal_allreduce(3), 7, 1000, channels);
  EXPECT_TRUE(channels.opened.empty());
  EXPECT_EQ(program->compiled->stages[0].kind, CompiledStage::Kind::Host);
  EXPECT_EQ(program->compiled->stages[1].kind, CompiledStage::Kind::None);
  EXPECT_EQ(program->compiled->stages[2].kind, CompiledStage::Kind::Host);
}

TEST(BoundProgram, SlicesOfATileFollowOneAnotherAndTheLastAreShorter) {
  RecordedChannels channels;
  const auto program = bound(unequal_allreduce(3), 0, 16384 + 10, channels);
  for (const size_t last : {0U, 1U}) {
    const BoundStage& stage = program->kinds[last][0];
    ASSERT_NE(stage.views, nullptr);
    const size_t length = last == 1 ? 10 : 16384;
    size_t sum = 0;
    for (uint32_t slice = 0; slice < 3; ++slice) {
      EXPECT_EQ(stage.views->given[0][slice], static_cast<int64_t>(4 * sum));
      sum += stage.views->block_elements[slice];
    }
    EXPECT_EQ(sum, length);
    EXPECT_EQ(stage.host.count, stage.views->block_elements[0]);
  }
  EXPECT_EQ(program->kinds[0][0].output, Memory::Bank);
  EXPECT_EQ(program->kinds[0][2].input, Memory::Output);
}

TEST(BoundProgram, UnitsInARowNeedNoViews) {
  RecordedChannels channels;
  const auto program = bound(unequal_allreduce(1), 0, 1000, channels);
  EXPECT_EQ(program->kinds[0][0].views, nullptr);  // everybody's vector to the leader
  EXPECT_EQ(program->kinds[0][0].host.count, 1000U);
}

// A group of one in a stage of hosts of one rank and of four.
TEST(BoundProgram, WhoIsAloneOnItsHostCopies) {
  HierarchicalShape shape{.hosts = hosts_of({1, 4})};
  shape.reduce_inside = shape.spread_inside = node_choice(NodeScheme::Direct);
  shape.across = {.name = "star", .kind = MessageAlgorithm::Kind::Tree, .tree = knomial_tree(2, 0, 2)};
  const auto program = std::make_shared<const Program>(hierarchical_program(Collective::AllReduce, -1, shape));
  RecordedChannels channels;
  const auto alone = bound(program, 0, 1000, channels);
  ASSERT_EQ(alone->compiled->stages[0].kind, CompiledStage::Kind::Copy);
  ASSERT_EQ(alone->kinds[0][0].copies.size(), 1U);
  EXPECT_EQ(alone->kinds[0][0].copies[0].from, (UnitAt{Memory::Input, 0}));
  EXPECT_EQ(alone->kinds[0][0].copies[0].to.memory, Memory::Bank);
  EXPECT_EQ(alone->kinds[0][0].copies[0].elements, 1000U);
}

TEST(CompiledProgram, RefusesUnitsOfAHostStageInSeveralBuffers) {
  Program program{.algorithm = "mixed", .collective = Collective::AllGather, .nranks = 2, .scratch_slots = 1};
  const uint32_t given = program.add_list({{0, Buffer::Input, 0}, {1, Buffer::Scratch, 0}});
  const uint32_t gotten = program.add_list({{0, Buffer::Output, 0}});
  program.stages.push_back({.where = Stage::Where::Host, .collective = Collective::AllGather});
  program.stages[0].groups.push_back({{0, given, gotten}, {1, gotten, gotten}});
  const auto compiled = compile(std::make_shared<const Program>(program), 1, false);
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.error().message().find("lie in several buffers"), std::string::npos);
}

}  // namespace
}  // namespace ccom
