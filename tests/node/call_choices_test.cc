// SPDX-License-Identifier: Apache-2.0
//
// Where the calls of a kind begin: with the first way, or with the one that somebody has learned.
#include "node/call_choices.h"

#include <gtest/gtest.h>

namespace ccom {
namespace {

const NodeTask kTask = node_task(Collective::AllReduce, 2, -1);

std::vector<NodeChoice> three_ways() {
  std::vector<NodeChoice> ways(3);
  ways[1].streams = ways[2].claims_lines = true;
  return ways;
}

TEST(CallChoices, BeginWithTheExpectedWay) {
  CallChoices choices;
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 0U);
  choices.hear(0, 0);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 0U);
}

TEST(CallChoices, BeginWithTheWayThatWasLearnedForTheirBuffers) {
  CallChoices choices([](const CallChoices::Kind& kind, const NodeTask&, const std::vector<NodeChoice>& ways,
                         std::optional<uint64_t> buffers) -> size_t {
    EXPECT_EQ(ways, three_ways());
    if (kind.bytes != 8) return 0;
    return buffers == 7U ? 1 : 2;
  });
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U) << "buffers are not known yet";
  choices.hear(0, 7);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 1U);
  EXPECT_TRUE(choices.is_timed()) << "and they go on learning";
  choices.hear(0, 0);
  choices.end(100);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U);
  choices.hear(0, 0);
  ASSERT_EQ(choices.found().size(), 2U);
  EXPECT_EQ(choices.found()[0].choice.best(), 2U);
  EXPECT_EQ(choices.found()[1].choice.best(), 1U);
  EXPECT_EQ(choices.begin({.bytes = 16}, kTask, three_ways()), 0U);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, {NodeChoice()}), 0U) << "there is one way alone";
}

// CCOM_TUNING=off: what is expected, nothing else.
TEST(CallChoices, ThatTryNothingStayWithTheExpectedWayOfTheirBuffers) {
  CallChoices choices([](const CallChoices::Kind&, const NodeTask&, const std::vector<NodeChoice>&,
                         std::optional<uint64_t> buffers) { return buffers == 7U ? size_t{1} : size_t{2}; },
                      false);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U);
  choices.hear(0, 7);
  for (int call = 0; call < 1000; ++call) {
    ASSERT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 1U) << "call " << call;
    ASSERT_FALSE(choices.is_timed());
    choices.hear(0, 7);
  }
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 1U);
  choices.hear(0, 0);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U);
}

}  // namespace
}  // namespace ccom
