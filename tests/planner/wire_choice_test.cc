// SPDX-License-Identifier: Apache-2.0
//
// When sums cross hosts as blocks: by what the call is and where the ranks are alone, and then in every program that is
// legal, however it is found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithms/stage_plans.h"
#include "plan/program_verify.h"
#include "planner/planner.h"
#include "tests/harness/results.h"
#include "tests/planner/machines.h"

namespace ccom {
namespace {

constexpr UnitType kWire = UnitType::Int8Blocks;
constexpr size_t kLong = size_t{1} << 20;

Topology slow_hosts(const std::vector<int>& hosts) { return ranks_on(hosts, {.bytes_per_second = 1.25e8}); }

Question allreduce(size_t bytes, bool narrow_float = false) {
  return {.collective = Collective::AllReduce, .bytes = bytes, .narrow_float = narrow_float, .wire = kWire};
}

const Settings kAsked{.shared_memory = true, .wire = kWire};

TEST(WireChoice, EveryLegalProgramSendsBlocksAndIsProved) {
  for (const std::vector<int>& hosts : std::vector<std::vector<int>>{{2, 2}, {1, 1, 1}, {3, 1, 2}, {4, 4, 4, 4, 4}}) {
    for (const bool narrow_float : {false, true}) {
      const Topology topology = slow_hosts(hosts);
      const Choice choice = value_of(choose(topology, kAsked, allreduce(kLong, narrow_float)));
      size_t legal = 0;
      for (const Candidate& candidate : choice.candidates) {
        if (!candidate.legal) continue;
        ++legal;
        EXPECT_EQ(candidate.program.wire(), kWire) << candidate.program.algorithm;
        const ProgramReport report = value_of(verify_program(candidate.program, {stage_plan, stage_node_plan}));
        EXPECT_LE(report.max_encodings, 2);
      }
      EXPECT_GE(legal, 1U);
    }
  }
}

TEST(WireChoice, HostsWithoutCommonMemoryAndOneRankEachSendBlocks) {
  const Settings messages{.shared_memory = false, .wire = kWire};
  EXPECT_EQ(crosses_as(slow_hosts({1, 1, 1}), messages, allreduce(kLong)), kWire);
  EXPECT_EQ(channels_by_peer(slow_hosts({1, 1, 1}), messages, 0)[1], static_cast<int>(kTilesUnderWay));
  EXPECT_EQ(crosses_as(slow_hosts({2, 2}), messages, allreduce(kLong)), UnitType::Call);
}

TEST(WireChoice, ShortCallsOneHostAndOtherCollectivesSendNumbers) {
  const Topology hosts = slow_hosts({2, 2});
  EXPECT_EQ(crosses_as(hosts, kAsked, allreduce(kMostPlainBytes)), UnitType::Call);
  EXPECT_EQ(crosses_as(hosts, kAsked, allreduce(kMostPlainBytes * 2)), kWire);
  EXPECT_EQ(crosses_as(slow_hosts({4}), kAsked, allreduce(kLong)), UnitType::Call);
  Question other = allreduce(kLong);
  other.collective = Collective::ReduceScatter;
  EXPECT_EQ(crosses_as(hosts, kAsked, other), UnitType::Call);
  for (const Question& question : {allreduce(kMostPlainBytes), other}) {
    const Choice choice = value_of(choose(hosts, kAsked, question));
    EXPECT_EQ(choice.program().wire(), UnitType::Call);
  }
}

TEST(WireChoice, NamesOfOtherAlgorithmsAreRefusedWithTheReason) {
  Settings forced = kAsked;
  forced.forced = "ring";
  EXPECT_THAT(error_of(choose(slow_hosts({2, 2}), forced, allreduce(kLong))).message(),
              testing::HasSubstr("wire=int8"));
}

// A quarter of the bytes, and what the host does with them.
TEST(WireChoice, IsPricedByTheBytesOfBlocks) {
  const Topology hosts = slow_hosts({2, 2});
  Question plain = allreduce(size_t{64} << 20);
  plain.wire = UnitType::Call;
  const Result<Choice> wide = choose(hosts, kAsked, plain), narrow = choose(hosts, kAsked, allreduce(size_t{64} << 20));
  ASSERT_TRUE(wide && narrow);
  const double gain = wide->candidates[wide->chosen].time_ns / narrow->candidates[narrow->chosen].time_ns;
  EXPECT_GT(gain, 2.5);
  EXPECT_LT(gain, 4);
}

}  // namespace
}  // namespace ccom
