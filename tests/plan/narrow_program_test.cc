// SPDX-License-Identifier: Apache-2.0
//
// Programs whose sums cross hosts in another type than the call's: proved on hosts of many forms. As scaled blocks:
// refused where a stage takes blocks for numbers, or where numbers are encoded again and again. As float32: rounded
// once by whatever algorithm crosses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/print.h"
#include "tests/harness/results.h"
#include "tests/plan/program_shapes.h"

namespace ccom {
namespace {

Program narrow_program(const HostRanks& hosts, int owners, bool widens, Pattern pattern) {
  HierarchicalShape shape{.hosts = hosts, .owners = owners};
  shape.reduce_inside = node_choice(owners == 1 ? NodeScheme::TwoShot : NodeScheme::Direct);
  shape.spread_inside = node_choice(NodeScheme::Direct);
  shape.across = algorithm_across(Collective::AllReduce, static_cast<int>(hosts.size()), pattern, 0);
  shape.lanes = static_cast<int>(kTilesUnderWay);
  shape.wire = UnitType::Float8Blocks;
  shape.widens = widens;
  return hierarchical_program(Collective::AllReduce, -1, shape);
}

TEST(NarrowPrograms, AreProvedOnHostsOfManyForms) {
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{2, 2}, {1, 1}, {3, 1, 2}, {3, 5}, {2, 2, 2, 2}}) {
    for (const uint32_t seed : {0U, 7U}) {
      const HostRanks hosts = hosts_of(sizes, seed);
      const int least = *std::ranges::min_element(sizes);
      for (const int owners : {1, least}) {
        for (const bool widens : {false, true}) {
          for (const Pattern pattern : {Pattern::Direct, Pattern::OneShot}) {
            const Program program = narrow_program(hosts, owners, widens, pattern);
            const Result<ProgramReport> report = verify_program(program, plan_source());
            ASSERT_TRUE(report) << report.error().message() << "\n" << to_text(program);
            EXPECT_LE(report->max_encodings, 2) << to_text(program);
            EXPECT_LT(report->order, SumOrder::Canonical);
            EXPECT_EQ(program.wire(), UnitType::Float8Blocks);
          }
        }
      }
    }
  }
}

// What the planner never does, and prove() refuses.
TEST(NarrowPrograms, EncodingsAreCountedWhereSumsAreFormedOnTheWay) {
  const Program program = narrow_program(hosts_of({1, 1, 1, 1, 1}), 1, false, Pattern::Ring);
  const ProgramReport report = value_of(verify_program(program, plan_source()));
  EXPECT_GT(report.max_encodings, 2);
}

void expect_refused(const Program& program, const char* why) {
  EXPECT_THAT(message_of(verify_program(program, plan_source())), testing::HasSubstr(why)) << to_text(program);
}

TEST(NarrowPrograms, BlocksThatAreTakenForNumbersAreRefused) {
  const Program right = narrow_program(hosts_of({2, 2}), 2, false, Pattern::Direct);
  ASSERT_EQ(right.stages.size(), 5U);
  Program wrong = right;
  wrong.stages[2].gives_type = wrong.stages[2].gets_type = UnitType::Call;
  expect_refused(wrong, "in elements of another type");
  wrong = right;
  wrong.stages.erase(wrong.stages.begin() + 1);  // nobody encodes
  expect_refused(wrong, "before it is there");
  wrong = right;
  wrong.stages[3].gives_type = UnitType::Int8Blocks;
  expect_refused(wrong, "in elements of another type");
  wrong = right;
  wrong.stages[3].gets_type = UnitType::Float32;
  expect_refused(wrong, "the user's buffers");
  wrong = right;
  wrong.stages[0].gets_type = UnitType::Float32;
  expect_refused(wrong, "not alone");
}

Program float_program(Collective collective, const HostRanks& hosts, int owners, Rank root, Pattern pattern) {
  HierarchicalShape shape{.hosts = hosts, .owners = owners, .wire = UnitType::Float32, .widens = true};
  const bool reduces_to_one = owners == 1 && collective != Collective::ReduceScatter;
  shape.reduce_inside = node_choice(reduces_to_one ? NodeScheme::TwoShot : NodeScheme::Direct);
  shape.spread_inside = node_choice(NodeScheme::Direct);
  Rank root_host = 0;
  while (root >= 0 && std::ranges::count(hosts[static_cast<size_t>(root_host)], root) == 0) ++root_host;
  const auto count = static_cast<int>(hosts.size());
  shape.across = needs_blocks_across(collective, hosts, owners)
                     ? MessageAlgorithm{.name = "blocks", .kind = MessageAlgorithm::Kind::Blocks}
                     : algorithm_across(collective, count, pattern, root_host);
  shape.lanes = static_cast<int>(kTilesUnderWay);
  return hierarchical_program(collective, root, shape);
}

TEST(FloatCrossing, RoundsOnceOnHostsOfManyForms) {
  for (const std::vector<int>& sizes : std::vector<std::vector<int>>{{2, 2}, {3, 1, 2}, {3, 5}, {2, 2, 2, 2}, {1, 4}}) {
    for (const uint32_t seed : {0U, 7U}) {
      const HostRanks hosts = hosts_of(sizes, seed);
      const int least = *std::ranges::min_element(sizes), ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
      for (const int owners : {1, least}) {
        for (const Pattern pattern : {Pattern::OneShot, Pattern::Ring, Pattern::RecursiveDoubling}) {
          for (const auto& [collective, root] :
               {std::pair(Collective::AllReduce, -1), std::pair(Collective::ReduceScatter, -1),
                std::pair(Collective::Reduce, 0), std::pair(Collective::Reduce, ranks - 1)}) {
            const Program program = float_program(collective, hosts, owners, root, pattern);
            const Result<ProgramReport> report = verify_program(program, plan_source());
            ASSERT_TRUE(report) << report.error().message() << "\n" << to_text(program);
            EXPECT_EQ(report->max_roundings, 1) << to_text(program);
            EXPECT_EQ(report->max_encodings, 0);
            EXPECT_EQ(program.wire(), UnitType::Float32);
          }
        }
      }
    }
  }
}

TEST(FloatCrossing, SumsThatAreNotWidenedRoundMoreOften) {
  Program program = float_program(Collective::AllReduce, hosts_of({2, 2}), 2, -1, Pattern::OneShot);
  ASSERT_EQ(program.stages.size(), 5U);
  for (Stage& stage : program.stages) stage.gives_type = stage.gets_type = UnitType::Call;
  const ProgramReport report = value_of(verify_program(program, plan_source()));
  EXPECT_EQ(report.max_roundings, 2);
}

TEST(FloatCrossing, FloatsThatAreTakenForTheCallsTypeAreRefused) {
  const Program right = float_program(Collective::AllReduce, hosts_of({2, 2}), 2, -1, Pattern::OneShot);
  Program wrong = right;
  wrong.stages[2].gives_type = wrong.stages[2].gets_type = UnitType::Call;
  expect_refused(wrong, "in elements of another type");
  wrong = right;
  wrong.stages[3].gets_type = UnitType::Float32;  // nobody rounds
  expect_refused(wrong, "the user's buffers");
  wrong = right;
  wrong.stages.erase(wrong.stages.begin());  // nobody widens
  expect_refused(wrong, "before it is there");
}

TEST(NarrowPrograms, SlotsHoldWhateverTypeIsThere) {
  const Program program = narrow_program(hosts_of({2, 2}), 2, true, Pattern::Direct);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{129}, size_t{100003}}) {
    const ProgramGeometry geometry(program, count, 2);
    const size_t most = geometry.block_elements(0, 0);
    EXPECT_GE(geometry.slot_bytes(), 4 * most);
    EXPECT_GE(geometry.slot_bytes(), (most + 63) / 64 * 68);
    EXPECT_EQ(geometry.slot_bytes() % 68, 0U);
    EXPECT_EQ(geometry.slot_bytes() % 64, 0U);
    EXPECT_EQ(geometry.scratch_bytes(), 4 * geometry.slot_bytes());
  }
}

}  // namespace
}  // namespace ccom
