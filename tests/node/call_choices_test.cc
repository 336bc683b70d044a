// SPDX-License-Identifier: Apache-2.0
//
// Where the calls of a kind begin: with the first way, or with the one that somebody has learned.
#include "node/call_choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace ccom {
namespace {

constexpr CallChoices::Heard kMapped = {.mixed = 7, .is_any_mapped = true};
const NodeTask kTask = node_task(Collective::AllReduce, 2, -1);

std::vector<NodeChoice> three_ways() {
  std::vector<NodeChoice> ways(3);
  ways[1].streams = ways[2].claims_lines = true;
  return ways;
}

TEST(CallChoices, BeginWithTheExpectedWay) {
  CallChoices choices;
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 0U);
  choices.hear({});
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 0U);
}

TEST(CallChoices, BeginWithTheWayThatWasLearnedForTheirBuffers) {
  CallChoices choices([](const CallChoices::Kind& kind, const NodeTask&, const std::vector<NodeChoice>& ways,
                         std::optional<uint64_t> buffers) {
    EXPECT_EQ(ways, three_ways());
    if (kind.bytes != 8) return ExpectedWays();
    return ExpectedWays{.first = buffers == kMapped.buffers() ? size_t{1} : size_t{2}};
  });
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U) << "buffers are not known yet";
  choices.hear(kMapped);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 1U);
  EXPECT_TRUE(choices.is_timed()) << "and they go on learning";
  choices.hear({});
  choices.end(0, 100);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U);
  choices.hear({});
  ASSERT_EQ(choices.found().size(), 2U);
  EXPECT_EQ(choices.found()[0].choice.best(), 2U);
  EXPECT_EQ(choices.found()[1].choice.best(), 1U);
  EXPECT_EQ(choices.begin({.bytes = 16}, kTask, three_ways()), 0U);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, {NodeChoice()}), 0U) << "there is one way alone";
}

// CCOM_TUNING=off: what is expected, nothing else.
TEST(CallChoices, ThatTryNothingStayWithTheExpectedWayOfTheirBuffers) {
  CallChoices choices(
      [](const CallChoices::Kind&, const NodeTask&, const std::vector<NodeChoice>&, std::optional<uint64_t> buffers) {
        return ExpectedWays{.first = buffers == kMapped.buffers() ? size_t{1} : size_t{2}};
      },
      false);
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U);
  choices.hear(kMapped);
  for (int call = 0; call < 1000; ++call) {
    ASSERT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 1U) << "call " << call;
    ASSERT_FALSE(choices.is_timed());
    choices.hear(kMapped);
  }
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 1U);
  choices.hear({});
  EXPECT_EQ(choices.begin({.bytes = 8}, kTask, three_ways()), 2U);
}

// Broadcast of 25 MiB by two ranks whose processors are far from each other: 2179 us where the reader copies by itself,
// 1498 through staging memory. Mapped buffers could not be treated as ordinary ones.
TEST(CallChoices, TryToTreatMappedBuffersAsOrdinaryOnesAndNothingElseSo) {
  std::vector<NodeChoice> ways = three_ways();
  ways.back().stages_mapped = true;
  CallChoices choices([](const CallChoices::Kind&, const NodeTask&, const std::vector<NodeChoice>&,
                         std::optional<uint64_t>) { return ExpectedWays{.first = 2}; });
  for (const auto& [heard, most] : {std::pair(kMapped, size_t{2}), {CallChoices::Heard{}, size_t{1}}}) {
    choices.begin({.bytes = 8}, kTask, ways);
    choices.hear(heard);
    size_t greatest = 0;
    for (int64_t call = 0; call < 2000; ++call) {
      const size_t way = choices.begin({.bytes = 8}, kTask, ways);
      greatest = std::max(greatest, way);
      CallChoices::Heard now = heard;
      now.end_ns = 1000;
      choices.hear(now);
      if (choices.is_timed()) choices.end(0, 1000);
    }
    EXPECT_EQ(greatest, most);
  }
}

// The kind that nobody uses makes room; those in use keep what they know. Every kind begins as it is expected to.
TEST(CallChoices, KnowWhatIsUsedOfAnyNumberOfKinds) {
  CallChoices choices([](const CallChoices::Kind&, const NodeTask&, const std::vector<NodeChoice>&,
                         std::optional<uint64_t>) { return ExpectedWays{.first = 1}; });
  const auto call = [&](uint64_t bytes) {
    const size_t way = choices.begin({.bytes = bytes}, kTask, three_ways());
    choices.hear({.end_ns = 1000});
    if (choices.is_timed()) choices.end(0, 1000);
    return way;
  };
  const auto calls_of = [&](uint64_t bytes) {
    for (const CallChoices::Found& found : choices.found()) {
      if (found.kind.bytes == bytes) return found.choice.asked();
    }
    return uint64_t{0};
  };
  for (uint64_t bytes = 1; bytes <= 20'000; ++bytes) {
    ASSERT_EQ(call(bytes), 1U) << bytes;
    call(0);
  }
  EXPECT_EQ(calls_of(0), 19'999U) << "all but the first, which did not know its buffers";
  EXPECT_EQ(calls_of(1), 0U);
  EXPECT_LE(choices.found().size(), 1024U);
  EXPECT_EQ(call(1), 1U);
}

// A size that no call has had before is not to find out again what those around it know.
TEST(CallChoices, BeginWithWhatCallsOfAboutAsManyBytesHaveFoundOut) {
  CallChoices choices;
  size_t last = 0;
  const auto call = [&](uint64_t bytes, uint64_t words, CallChoices::Heard heard) {
    const size_t way = choices.begin({.words = words, .bytes = bytes}, kTask, three_ways());
    heard.end_ns = last == 1 ? 500 : 1000;  // of the call before
    choices.hear(heard);
    if (choices.is_timed()) {
      choices.end(0, 1000);
      last = way;
    }
    return way;
  };
  for (int i = 0; i < 3000; ++i) call(60'000, 7, {});
  ASSERT_EQ(call(60'000, 7, {}), 1U);
  EXPECT_EQ(call(50'000, 7, {}), 1U) << "on buffers that are not known yet";
  EXPECT_EQ(call(50'000, 7, {}), 1U);
  EXPECT_EQ(call(65'536, 7, {}), 1U) << "which has the same power of two";
  EXPECT_EQ(call(32'768, 7, {}), 0U);
  EXPECT_EQ(call(70'000, 7, {}), 0U);
  EXPECT_EQ(call(50'000, 8, {}), 0U) << "other calls";
  EXPECT_EQ(call(40'000, 7, kMapped), 1U);
  EXPECT_EQ(call(40'000, 7, kMapped), 0U) << "other buffers";
}

double heard_ns(std::vector<CallChoices::Said> said) {
  CallChoices::Heard heard;
  for (const CallChoices::Said& one : said) heard.add(one);
  return static_cast<double>(heard.end_ns - heard.begin_ns);
}

// Four ranks that take turns on one processor wait for one another at the opening barrier of a one-shot call, and that
// is what it costs: once such waiting did not count, and the way that had all of it there was always taken.
TEST(CallChoices, CountWhatRanksThatShareAProcessorWaitForOneAnother) {
  const int64_t now = int64_t{1} << 60;  // as a clock may show: more than a float can tell apart
  EXPECT_EQ(heard_ns({{now, 40, 0}, {now, 40, 0}, {now, 40, 0}, {now, 40, 0}}), 40);
  // In a row: each rank begins as soon as it has left the call before; the last one leaves at 40, 80, 130.
  const double sum = heard_ns({{now, 10, 0}, {now, 20, 0}, {now, 30, 0}, {now, 40, 0}}) +
                     heard_ns({{now + 10, 70, 0}, {now + 20, 30, 0}, {now + 30, 30, 0}, {now + 40, 30, 0}}) +
                     heard_ns({{now + 80, 20, 0}, {now + 50, 80, 0}, {now + 60, 50, 0}, {now + 70, 50, 0}});
  EXPECT_EQ(sum, 130);
}

TEST(CallChoices, DoNotCountTheWaitForARankThatComesLate) { EXPECT_EQ(heard_ns({{1000, 9000, 0}, {9970, 28, 0}}), 30); }

}  // namespace
}  // namespace ccom
