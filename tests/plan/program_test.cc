// SPDX-License-Identifier: Apache-2.0
#include "plan/program.h"
#include "tests/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/print.h"
#include "tests/harness/results.h"
#include "tests/plan/program_shapes.h"

namespace ccom {
namespace {

using testing::HasSubstr;

Status proof(const Program& program) { return error_of(verify_program(program, plan_source())); }

void prove_all(const HostRanks& hosts, Pattern pattern) {
  const int least = static_cast<int>(std::ranges::min(hosts, {}, &std::vector<Rank>::size).size());
  int nranks = 0;
  for (const auto& host : hosts) nranks += static_cast<int>(host.size());
  for (const Collective collective : kProgramCollectives) {
    for (const int owners : std::set<int>{1, std::min(2, least), least}) {
      for (const Rank root : {0, nranks / 2, nranks - 1}) {
        const std::optional<Program> program = program_over(collective, hosts, owners, root, pattern);
        if (!program) continue;
        const Status status = proof(*program);
        ASSERT_TRUE(status.is_ok()) << status.message() << "\n" << to_text(*program);
        if (program->root < 0) break;
      }
    }
  }
}

TEST(Programs, EqualHostsAreProved) {
  for (const int hosts : {2, 3, 5, 8}) {
    for (const int ranks : {1, 2, 3})
      prove_all(hosts_of(std::vector<int>(static_cast<size_t>(hosts), ranks)), Pattern::Ring);
  }
  prove_all(hosts_of({4, 4}), Pattern::OneShot);
  prove_all(hosts_of({2, 2, 2, 2}), Pattern::Circulant);
  prove_all(hosts_of({2, 2, 2, 2}), Pattern::Direct);
}

TEST(Programs, UnequalHostsAreProved) {
  for (const std::vector<int>& sizes : {std::vector<int>{1, 4}, {3, 5}, {2, 2, 3, 2}, {5, 1, 3}, {4, 2}}) {
    prove_all(hosts_of(sizes), Pattern::Ring);
    prove_all(hosts_of(sizes), Pattern::Direct);
  }
}

TEST(Programs, RanksOutOfHostOrderAreProved) {
  for (const uint32_t seed : {1U, 2U, 3U}) {
    prove_all(hosts_of({3, 3}, seed), Pattern::Ring);
    prove_all(hosts_of({3, 5}, seed), Pattern::Direct);
    prove_all(hosts_of({2, 2, 3, 2}, seed), Pattern::Circulant);
  }
}

TEST(Programs, RoundOnceInsideAndThenAsTheAlgorithmAcross) {
  const auto program = program_over(Collective::AllReduce, hosts_of({3, 5}), 3, -1, Pattern::OneShot);
  const auto report = value_of(verify_program(*program, plan_source()));
  EXPECT_EQ(report.max_roundings, 2);
}

TEST(Programs, TilesAreUnderWayInOneOrder) {
  const auto program = program_over(Collective::AllReduce, hosts_of({2, 2}), 2, -1, Pattern::OneShot);
  const std::vector<Part> order = order_of(*program, 10);
  EXPECT_EQ(order.size(), 10U * 4);
  std::set<std::tuple<Part::Kind, uint32_t, uint32_t>> seen;
  std::set<uint32_t> under_way;
  size_t most = 0;
  for (const Part& part : order) {
    EXPECT_TRUE(seen.emplace(part.kind, part.tile, part.stage).second) << to_text(part);
    if (part.kind == Part::Kind::Start) under_way.insert(part.tile);
    if (part.kind == Part::Kind::Finish) {
      EXPECT_EQ(under_way.erase(part.tile), 1U) << to_text(part);
    }
    most = std::max(most, under_way.size());
  }
  EXPECT_EQ(most, kTilesUnderWay);
}

TEST(Programs, GeometryCoversEveryElementOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{7}, size_t{1000}, size_t{100003}}) {
    for (const size_t tile_bytes : {size_t{0}, size_t{4096}}) {
      Program program;
      program.slices = 3;
      program.scratch_slots = 1;
      program.tile_bytes = tile_bytes;
      const ProgramGeometry geometry(program, count, 4);
      std::vector<int> covered(count);
      for (size_t tile = 0; tile < geometry.tiles(); ++tile) {
        for (uint32_t slice = 0; slice < 3; ++slice) {
          const size_t first = geometry.offset(tile, {slice, Buffer::Output, slice});
          ASSERT_LE(geometry.block_elements(tile, slice), geometry.slot_bytes() / 4);
          for (size_t i = 0; i < geometry.block_elements(tile, slice); ++i) ++covered.at(first + i);
        }
      }
      EXPECT_TRUE(std::ranges::all_of(covered, [](int times) { return times == 1; })) << count;
    }
  }
}

class Mutants : public testing::Test {
 protected:
  Program good_ = *program_over(Collective::AllReduce, hosts_of({3, 5}), 3, -1, Pattern::OneShot);

  // Replaces a member's list.
  static void edit(Program& program, size_t stage, size_t group, size_t member, bool gives, std::vector<BlockAt> list) {
    const uint32_t index = program.add_list(std::move(list));
    StageMember& who = program.stages[stage].groups[group][member];
    (gives ? who.gives : who.gets) = index;
  }
};

TEST_F(Mutants, TheOriginalIsRight) { EXPECT_TRUE(proof(good_).is_ok()) << proof(good_).message(); }

TEST_F(Mutants, SlicesThatOverlap) {
  edit(good_, 1, 2, 0, false, {{2, Buffer::Output, 1}});
  edit(good_, 2, 0, 2, true, {{2, Buffer::Output, 1}});
  EXPECT_THAT(proof(good_).message(), HasSubstr("a block is put where the output has another one"));
}

TEST_F(Mutants, ASliceThatIsMissing) {
  good_.stages[1].groups.pop_back();
  EXPECT_THAT(proof(good_).message(), HasSubstr("given before it is there"));
  std::ranges::for_each(good_.stages[2].groups, [&](auto& group) {
    group[2].gives = good_.add_list({});
    for (StageMember& member : group) {
      std::vector<BlockAt> gets = good_.gets(member);
      std::erase_if(gets, [](const BlockAt& at) { return at.block == 2; });
      member.gets = good_.add_list(gets);
    }
  });
  EXPECT_THAT(proof(good_).message(), HasSubstr("block 2 of the output is never written"));
}

TEST_F(Mutants, SlicesThatAreCrossed) {
  edit(good_, 1, 0, 1, true, {{1, Buffer::Scratch, 0}});
  EXPECT_THAT(proof(good_).message(), HasSubstr("is not what lies there"));
}

TEST_F(Mutants, AStageThatDoesNotComplete) {
  good_.stages[1].completes = false;
  good_.stages[1].messages = {.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks};
  EXPECT_THAT(proof(good_).message(), HasSubstr("never completed"));
}

TEST_F(Mutants, AStageThatCompletesTooEarly) {
  good_.stages[0].completes = true;
  EXPECT_THAT(proof(good_).message(), HasSubstr("complete"));
}

TEST_F(Mutants, ARankThatIsLeftOutIsNamed) {
  good_.stages[0].groups[1].erase(good_.stages[0].groups[1].begin() + 4);
  EXPECT_THAT(proof(good_).message(), HasSubstr("lacks the contribution of rank 7"));
}

TEST_F(Mutants, AScratchSlotThatDoesNotExist) {
  good_.scratch_slots = 0;
  EXPECT_THAT(proof(good_).message(), HasSubstr("slot of scratch does not exist"));
}

TEST_F(Mutants, ARankInTwoGroups) {
  good_.stages[1].groups[1][0].rank = 0;
  EXPECT_THAT(proof(good_).message(), HasSubstr("in two groups"));
}

TEST_F(Mutants, TilesThatShareChannelsAndAnswerEachOther) {
  Program ring = *program_over(Collective::AllReduce, hosts_of({2, 2, 2}), 2, -1, Pattern::Ring);
  ASSERT_TRUE(proof(ring).is_ok());
  ring.lanes = 1;
  EXPECT_THAT(proof(ring).message(), HasSubstr("tiles share channels"));
}

TEST_F(Mutants, AnOpeningThatDependsOnReach) {
  good_ = *program_over(Collective::AllReduce, hosts_of({3, 3}), 1, -1, Pattern::OneShot);
  good_.stages[0].node.mapped = {.scheme = NodeScheme::OneShot, .whole = true};
  EXPECT_THAT(proof(good_).message(), HasSubstr("does not begin as"));
}

TEST_F(Mutants, AnOrderWithACircle) {
  const std::vector<Part> order = order_of(good_, 2);
  std::vector<std::vector<Part>> orders(8, order);
  EXPECT_TRUE(check_order(good_, orders).is_ok());
  const auto first = std::ranges::find(orders[3], Part{Part::Kind::Run, 0, 0});
  const auto second = std::ranges::find(orders[3], Part{Part::Kind::Run, 1, 0});
  std::iter_swap(first, second);
  EXPECT_THAT(check_order(good_, orders).message(), HasSubstr("has a circle"));
}

TEST_F(Mutants, ABarrierThatDoesNotWaitForOtherHosts) {
  Program barrier = *program_over(Collective::Barrier, hosts_of({2, 3}), 1, -1, Pattern::Direct);
  barrier.stages.erase(barrier.stages.begin() + 1);
  EXPECT_THAT(proof(barrier).message(), HasSubstr("leaves the barrier before"));
}

// Every list of every member with a block less: no such program is accepted.
TEST_F(Mutants, ABlockLessInAnyList) {
  size_t tried = 0;
  for (const Collective collective : kProgramCollectives) {
    if (collective == Collective::Barrier) continue;
    const auto program =
        program_over(collective, hosts_of({2, 3}),
                     collective == Collective::Gather || collective == Collective::Scatter ? 1 : 2, 4, Pattern::Direct);
    if (!program) continue;
    for (size_t stage = 0; stage < program->stages.size(); ++stage) {
      for (size_t group = 0; group < program->stages[stage].groups.size(); ++group) {
        for (size_t member = 0; member < program->stages[stage].groups[group].size(); ++member) {
          for (const bool gives : {false, true}) {
            Program mutant = *program;
            mutant.stages[stage].messages = {.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks};
            const StageMember& who = mutant.stages[stage].groups[group][member];
            std::vector<BlockAt> list = gives ? mutant.gives(who) : mutant.gets(who);
            // Plans of hosts are written from complete lists; a list that lacks a block is no task at all.
            if (list.empty() || (gives && mutant.stages[stage].where == Stage::Where::Host)) continue;
            const std::vector<BlockAt>& given = mutant.gives(who);
            if (!gives && std::ranges::find(given, list.back()) != given.end()) continue;  // it lies there already
            list.pop_back();
            edit(mutant, stage, group, member, gives, list);
            const Result<ProgramReport> report = verify_program(mutant, plan_source(), {});
            EXPECT_FALSE(report) << to_text(mutant);
            ++tried;
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 50U);
}

TEST(Programs, AreTheSameAsTheGoldenFiles) {
  for (const Collective collective : kProgramCollectives) {
    const std::optional<Program> sharded = program_over(collective, hosts_of({2, 3}), 2, 4, Pattern::Direct);
    const std::optional<Program> leaders = program_over(collective, hosts_of({2, 3}), 1, 4, Pattern::Direct);
    std::string text = sharded ? to_text(*sharded) : "";
    if (leaders) text += to_text(*leaders);
    if (text.empty()) continue;
    expect_golden("program_" + std::string(name_of(collective)) + "_2_3.txt", text);
  }
}

}  // namespace
}  // namespace ccom
