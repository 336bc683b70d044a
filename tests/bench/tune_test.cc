// SPDX-License-Identifier: Apache-2.0
//
// The figures of --tune and their file, which a communicator accepts.
#include "bench/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/cores.h"
#include "tests/harness/folder.h"
#include "topology/topology.h"

namespace ccom::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(SpeedOf, SeparatesLatencyFromBandwidth) {
  const std::optional<Speed> speed = speed_of(2e-6, 1.002e-3, 8'000'000);
  ASSERT_TRUE(speed);
  EXPECT_DOUBLE_EQ(speed->latency_ns, 2000);
  EXPECT_NEAR(speed->bytes_per_second, 8e9, 1);
  EXPECT_EQ(speed_of(2e-6, 2e-6, 8), std::nullopt);
}

// On a busy machine two times may be as far apart as they like; what is written must be what is read.
TEST(RateOf, IsWhatATuningFileMayHold) {
  EXPECT_DOUBLE_EQ(rate_of(4'000'000, 1e-3).value(), 4e9);
  EXPECT_EQ(rate_of(4'000'000, 0), std::nullopt);
  EXPECT_EQ(rate_of(4'000'000, -1e-9), std::nullopt);
  EXPECT_EQ(rate_of(4'000'000, 1e-9), std::nullopt) << "4e15 bytes a second";
  EXPECT_EQ(rate_of(4'000'000, 5), std::nullopt) << "less than a megabyte a second";
  Speeds speeds{.memory = speed_of(0, 1.0, 1'000'000), .reduce_bytes_per_second = rate_of(999'999'999, 1e-6)};
  speeds.memory_costs.add("line_ns", 1e9);
  EXPECT_TRUE(calibration_from_json(to_json(speeds)));
}

TEST(Tune, WritesOnlyWhatWasMeasured) {
  const auto object = nlohmann::json::parse(to_json(Speeds{.memory = Speed{612.3, 9.12345e9}, .measured_on = "here"}));
  EXPECT_EQ(object, nlohmann::json::parse(R"({"memory": {"latency_ns": 612.0, "bytes_per_second": 9123000000.0},
                                              "measured_on": "here"})"));
  const auto costs = nlohmann::json::parse(to_json(Speeds{.post_ns = 99.7, .reduce_bytes_per_second = 2e10}));
  EXPECT_EQ(costs["costs"], nlohmann::json::parse(R"({"post_ns": 100.0, "reduce_bytes_per_second": 2e10})"));
}

TEST(Tune, LeavesOutWhatCannotBe) {
  Speeds speeds;
  speeds.memory_costs.add("line_ns", 61.234);
  speeds.memory_costs.add("shared_load_ns", 0.0123456);
  speeds.memory_costs.add("barrier_ns", -3);
  speeds.memory_costs.add("call_ns", 0);
  speeds.memory_costs.add("switch_ns", std::numeric_limits<double>::quiet_NaN());
  speeds.memory_costs.add("far_load_ns", std::numeric_limits<double>::infinity());
  speeds.memory_costs.add("read_call_ns", 1e10);
  EXPECT_THAT(speeds.memory_costs.left_out,
              ElementsAre(HasSubstr("barrier_ns"), HasSubstr("call_ns"), HasSubstr("switch_ns"),
                          HasSubstr("far_load_ns"), HasSubstr("read_call_ns")));
  const auto object = nlohmann::json::parse(to_json(speeds));
  EXPECT_EQ(object["memory_costs"], nlohmann::json::parse(R"({"line_ns": 61.2, "shared_load_ns": 0.0123})"));
}

TEST(PartnerOf, IsAnotherCore) {
  EXPECT_EQ(partner_of(3, {3}), -1);
  EXPECT_EQ(partner_of(3, {}), -1);
  EXPECT_EQ(partner_of(100'003, {100'003, 100'004}), 100'004) << "of cores that nothing is known of, the other one";
}

// Two ranks measure this machine. What the times are is not tested: on a busy machine a difference of two may be below
// nothing, and then the tool says so.
TEST(Tune, WritesAFileThatACommunicatorAccepts) {
  const TemporaryFolder folder;
  const std::string path = folder / "tune.json";
  Options options;
  options.tune = path;
  testing::internal::CaptureStdout();
  const launch::Outcome outcome =
      launch::run_as_threads(2, {}, [&](launch::Place place, ccomComm_t comm) { return tune(options, place, comm); });
  const std::string said = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(outcome.ok()) << outcome.text;
  const Result<Calibration> read = read_calibration(path);
  ASSERT_TRUE(read) << read.error().message();
  const auto object = nlohmann::json::parse(contents_of(path));
  std::set<std::string> keys{"cached_load_ns", "cached_store_ns"};
  if (usable_cores().size() > 1) keys.insert({"line_ns", "shared_load_ns", "shared_store_ns"});
  for (const std::string& key : keys) {
    const bool is_left_out = said.find("# left out: " + key + ":") != std::string::npos;
    EXPECT_NE(object["memory_costs"].contains(key), is_left_out) << key << "\n" << said;
  }
  for (const auto& [key, ns] : object["memory_costs"].items()) EXPECT_GT(ns.get<double>(), 0) << key;
  EXPECT_NE(read->memory_costs, Calibration{}.memory_costs);
}

}  // namespace
}  // namespace ccom::bench
