// SPDX-License-Identifier: Apache-2.0
//
// The text of values: names, labels, escapes, its end. That Prometheus reads it: tests/jobs/metrics_test.py.
#include "metrics/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/german_locale.h"

namespace ccom {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

RankMetrics rank_named(const std::string& name) {
  RankMetrics rank;
  rank.communicator = 0x12ab;
  rank.name = name;
  rank.host = "node";
  rank.ranks = 8;
  rank.activity.rank = 3;
  CallTotals::Of of{Collective::AllReduce, 0, 10, 80};
  of.timed = 2;
  of.timed_seconds = 0.5;
  rank.totals.calls = {of};
  of.size_class = kSizeClasses - 1;
  rank.totals.calls.push_back(of);
  rank.totals.waited_for = {{7, 1.5, 0}};
  return rank;
}

TEST(MetricsText, SaysWhatTheRankDid) {
  const std::string text = metrics_text({rank_named("training")});
  const std::string labels = R"({communicator="00000000000012ab",name="training",rank="3",host="node")";
  EXPECT_THAT(text, HasSubstr("ccom_calls_total" + labels + R"(,operation="allreduce",up_to_bytes="64"} 10)"));
  EXPECT_THAT(text, HasSubstr("ccom_data_bytes_total" + labels + R"(,operation="allreduce",up_to_bytes="+Inf"} 80)"));
  EXPECT_THAT(text, HasSubstr(R"(ccom_call_seconds_sum)" + labels + R"(,operation="allreduce",up_to_bytes="64"} 0.5)"));
  EXPECT_THAT(text, HasSubstr("ccom_waited_for_seconds_total" + labels + R"(,peer="7"} 1.5)"));
  EXPECT_THAT(text, HasSubstr("ccom_healthy" + labels + "} 1\n"));
  EXPECT_THAT(text, EndsWith("\n# EOF\n"));
}

TEST(MetricsText, U14IsTheSameInEveryLocale) {
  const std::string text = metrics_text({rank_named("training")});
  const GermanLocale german;
  EXPECT_EQ(metrics_text({rank_named("training")}), text);
}

TEST(MetricsText, SaysThatACommunicatorHasFailed) {
  RankMetrics rank = rank_named("x");
  rank.has_failed = true;
  EXPECT_THAT(metrics_text({rank}), HasSubstr("host=\"node\"} 0\n"));
}

TEST(MetricsText, LabelsCannotBreakOut) {
  const std::string text = metrics_text({rank_named("a\"} 1\nccom_x \\ \xff")});
  EXPECT_THAT(text, HasSubstr(R"(name="a\"} 1?ccom_x \\ ?")"));
  EXPECT_THAT(text, Not(HasSubstr("\nccom_x")));
}

TEST(MetricsText, OfNoRanksIsWhole) {
  const std::string text = metrics_text({});
  EXPECT_THAT(text, HasSubstr("ccom_library_info{version="));
  EXPECT_THAT(text, EndsWith("# EOF\n"));
}

}  // namespace
}  // namespace ccom
