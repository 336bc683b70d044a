// SPDX-License-Identifier: Apache-2.0
//
// What CCOM_METRICS may be, and that nothing which other hosts reach is among it.
#include "metrics/target.h"

#include <gtest/gtest.h>

namespace ccom {
namespace {

TEST(MetricsTarget, IsAFileOrALoopbackPort) {
  EXPECT_FALSE(parse_metrics_target("")->is_any());
  EXPECT_EQ(parse_metrics_target("/run/ccom-%r.prom")->path, "/run/ccom-%r.prom");
  EXPECT_EQ(parse_metrics_target("tcp://127.0.0.1:9400")->port, 9400);
  EXPECT_EQ(parse_metrics_target("tcp://localhost:9400")->address, "127.0.0.1");
  EXPECT_EQ(parse_metrics_target("tcp://[::1]:9400")->address, "::1");
  EXPECT_EQ(parse_metrics_target("tcp://127.0.0.53:9400")->address, "127.0.0.53");
}

TEST(MetricsTarget, IsNothingThatOtherHostsReach) {
  for (const char* text : {"tcp://0.0.0.0:9400", "tcp://10.0.0.7:9400", "tcp://[::]:9400", "tcp://node7:9400",
                           "tcp://127.evil.example:9400", "tcp://127.0.0.1", "tcp://127.0.0.1:x", "tcp://:9400",
                           "http://127.0.0.1:9400", "/run/%h.prom"}) {
    const Result<MetricsTarget> target = parse_metrics_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code(), Code::ConfigError) << text;
  }
}

TEST(MetricsTarget, PathsNameTheRankAndTheProcess) {
  EXPECT_EQ(metrics_path("/run/ccom-%r.prom", 3, 77), "/run/ccom-3.prom");
  EXPECT_EQ(metrics_path("%p-%r%%", 3, 77), "77-3%");
  EXPECT_EQ(metrics_path("%%r", 3, 77), "%r");
  EXPECT_TRUE(tells_ranks_apart("a-%r"));
  EXPECT_TRUE(tells_ranks_apart("a-%p"));
  EXPECT_FALSE(tells_ranks_apart("a-%%r"));
  EXPECT_FALSE(tells_ranks_apart("a"));
}

}  // namespace
}  // namespace ccom
