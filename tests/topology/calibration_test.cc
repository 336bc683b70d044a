// SPDX-License-Identifier: Apache-2.0
//
// What was measured on a machine: its file is read strictly and written back the same, merge() puts its figures in the
// place of defaults, the topology's hash shows them, and ranks that hold different ones do not start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/harness/folder.h"
#include "tests/harness/results.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Calibration whole() {
  return {.memory = LinkSpeed{620, 9.1e9},
          .network = LinkSpeed{18000, 12.2e9},
          .post_ns = 350,
          .reduce_bytes_per_second = 21e9,
          .memory_costs = MemoryCosts{.line_ns = 75, .read_call_ns = 900},
          .network_costs = NetworkCosts{.message_ns = 900, .flow_byte_ns = 0.3},
          .measured_on = "c7i.8xlarge"};
}

std::vector<RankView> views(const std::vector<std::optional<Calibration>>& calibrations) {
  std::vector<RankView> all;
  for (const auto& calibration : calibrations) {
    RankView view;
    view.host.id = view.host.name = "a";
    view.host.cpus = 8;
    view.calibration = calibration;
    all.push_back(view);
  }
  return all;
}

std::string refusal(const std::string& text) { return message_of(calibration_from_json(text)); }

TEST(Calibration, ComesBackFromJson) {
  const Calibration read = value_of(calibration_from_json(to_json(whole())));
  EXPECT_EQ(read, whole());
  EXPECT_EQ(*calibration_from_json(to_json(Calibration{})), Calibration{});
  Calibration part;
  part.network = LinkSpeed{1, 2};
  part.post_ns = 3;
  EXPECT_EQ(*calibration_from_json(to_json(part)), part);
}

TEST(Measured, CostsComeBackFromJson) {
  const MeasuredCosts whole{{0.2, 0.1, 0.3}, {0.034, 0.085, 0.03, 500, 0.04}};
  EXPECT_EQ(*measured_costs_from_json(to_json(whole)), whole);
  const MeasuredCosts lines{.lines = {.plain_ns = 0.2, .claimed_ns = 0.1, .streamed_ns = 0.3}};
  EXPECT_EQ(*measured_costs_from_json(to_json(lines)), lines);
  EXPECT_EQ(to_json(MeasuredCosts{}), "{}");
  EXPECT_FALSE(measured_costs_from_json(R"({"lines":{"plain_ns":-1}})"));
  EXPECT_FALSE(measured_costs_from_json(R"({"lines":{"other_ns":1}})"));
}

TEST(Calibration, IsRefusedWithTheLineOrTheKeyThatIsWrong) {
  EXPECT_THAT(refusal("{\n\"memory\": {\n\"latency_ns\": }}"), HasSubstr("line 3"));
  EXPECT_THAT(refusal(R"({"memory": {"latency_ns": 5}})"), HasSubstr("tuning.memory.bytes_per_second: missing"));
  EXPECT_THAT(refusal(R"({"memory": {"latency_ns": -1, "bytes_per_second": 1}})"), HasSubstr("tuning.memory.latency"));
  EXPECT_THAT(refusal(R"({"network": {"latency_ns": 1, "bytes_per_second": 0}})"), HasSubstr("tuning.network.bytes"));
  EXPECT_THAT(refusal(R"({"costs": {"post": 1}})"), HasSubstr("tuning.costs.post: unknown key"));
  EXPECT_THAT(refusal(R"({"costs": {"reduce_bytes_per_second": 0}})"), HasSubstr("reduce_bytes_per_second"));
  EXPECT_THAT(refusal(R"({"memory_costs": {"line": 1}})"), HasSubstr("tuning.memory_costs.line: unknown key"));
  EXPECT_THAT(refusal(R"({"memory_costs": {"line_ns": -1}})"), HasSubstr("tuning.memory_costs.line_ns"));
  EXPECT_THAT(refusal(R"({"network_costs": {"message_ns": -1}})"), HasSubstr("tuning.network_costs.message_ns"));
  EXPECT_THAT(refusal(R"({"memroy": {}})"), HasSubstr("tuning.memroy: unknown key"));
  EXPECT_THAT(refusal("[]"), HasSubstr("tuning: expected an object"));
}

TEST(Calibration, OfAFileIsRefusedWithTheFilesName) {
  const TemporaryFolder folder;
  const std::string path = folder / "calibration.json";
  EXPECT_THAT(read_calibration(path).error().message(), HasSubstr(path));
  std::ofstream(path) << R"({"costs": {"post_ns": "fast"}})";
  const Status failure = error_of(read_calibration(path));
  EXPECT_EQ(failure.code(), Code::ConfigError);
  EXPECT_THAT(failure.message(), testing::AllOf(HasSubstr(path), HasSubstr("tuning.costs.post_ns")));
  std::ofstream(path) << to_json(whole());
  EXPECT_EQ(*read_calibration(path), whole());
}

TEST(Calibration, SetsTheSpeedsOfTheMergedTopologyAndItsHash) {
  const Result<Topology> plain = merge(views({{}, {}}));
  const Result<Topology> tuned = merge(views({whole(), whole()}));
  ASSERT_TRUE(plain && tuned);
  EXPECT_EQ(tuned->memory, (LinkSpeed{620, 9.1e9}));
  EXPECT_EQ(tuned->network, (LinkSpeed{18000, 12.2e9}));
  EXPECT_EQ(tuned->costs, (Costs{350, 21e9}));
  EXPECT_NE(hash_of(*plain), hash_of(*tuned));
  const Topology empty = value_of(merge(views({Calibration{}, Calibration{}})));
  EXPECT_EQ(hash_of(*plain), hash_of(empty)) << "what was not measured keeps its default";
}

TEST(Calibration, MustBeTheSameOfAllRanks) {
  Calibration slower = whole();
  slower.memory->latency_ns += 1;
  const Status failure = error_of(merge(views({whole(), slower, whole(), {}})));
  EXPECT_EQ(failure.code(), Code::ConfigError);
  EXPECT_THAT(failure.peers(), ElementsAre(1, 3));
  EXPECT_THAT(failure.message(), HasSubstr("2 of 4 ranks have another calibration than rank 0"));
  EXPECT_THAT(merge(views({{}, whole()})).error().message(),
              HasSubstr("rank 1 has one of c7i.8xlarge, rank 0 has none"));
}

}  // namespace
}  // namespace ccom
