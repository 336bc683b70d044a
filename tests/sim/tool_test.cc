// SPDX-License-Identifier: Apache-2.0
//
// What ccom-sim writes: tables, JSON, timeline and heat map of one small case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/sim/output.h"
#include "tools/sim/trace.h"

namespace ccom::simtool {
namespace {

using testing::HasSubstr;

class Tool : public testing::Test {
 protected:
  void SetUp() override {
    SimOptions options;
    options.keep_intervals = true;
    options.traced_ranks = {0, 5};
    auto outcome = simulate_case(topology_, {Collective::AllReduce, 1 << 20, "swing"}, options, true);
    ASSERT_TRUE(outcome) << outcome.error().message();
    outcome_ = *std::move(outcome);
  }
  Topology topology_ = *make_topology("torus:4x4");
  Outcome outcome_;
};

TEST_F(Tool, SaysWhatTheBusiestWiresAre) {
  EXPECT_THAT(table_row(topology_, outcome_), HasSubstr("swing"));
  const std::string wires = wire_table(topology_, outcome_, 2);
  EXPECT_THAT(wires, HasSubstr("link"));
  EXPECT_THAT(wires, HasSubstr("host 0 link "));
}

TEST_F(Tool, JsonHoldsTheFigures) {
  const auto object = nlohmann::json::parse(to_json(topology_, outcome_));
  EXPECT_EQ(object["algorithm"], "swing");
  EXPECT_EQ(object["ranks"], 16);
  EXPECT_NEAR(object["time_us"].get<double>(), outcome_.report.time_ns / 1e3, 1e-6);
  EXPECT_GE(object["time_us"].get<double>(), object["bound_us"].get<double>());
}

TEST_F(Tool, TimelineHasTheStepsOfTheTracedRanks) {
  const auto trace = nlohmann::json::parse(chrome_trace(topology_, outcome_.report));
  std::set<int> ranks;
  for (const auto& event : trace["traceEvents"]) {
    ranks.insert(event["tid"].get<int>());
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  EXPECT_THAT(ranks, testing::ElementsAre(0, 5));
}

TEST_F(Tool, HeatMapHasARowForEachOfTheBusiestWires) {
  const std::string svg = heat_map(topology_, outcome_.report, 10);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  size_t rows = 0;
  for (size_t at = 0; (at = svg.find("host 0 link", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, 10u);
}

TEST(Cases, EveryCollectiveOfEveryKindOfMachineEnds) {
  for (const char* name :
       {"torus:3x5", "ring:5", "chain:4", "switch:6", "full:4", "trn3-us-gen2/1", "2*trn1.32xlarge/1", "3*p5.48xlarge",
        "torus:2x3x4", "trn2-ultraserver:x2h/1", "torus:4x4+routed", "single"}) {
    const Topology topology = *make_topology(name);
    for (const Collective collective :
         {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter, Collective::Broadcast,
          Collective::Reduce, Collective::Gather, Collective::Scatter, Collective::AllToAll, Collective::Barrier}) {
      const Case what{collective, static_cast<size_t>(topology.nranks()) * 4096, ""};
      const auto algorithms = legal_algorithms(topology, what);
      ASSERT_TRUE(algorithms) << name << ": " << algorithms.error().message();
      for (const std::string& algorithm : *algorithms) {
        const auto outcome = simulate_case(topology, {what.collective, what.bytes, algorithm}, {}, true);
        EXPECT_TRUE(outcome) << name << " " << algorithm << ": " << outcome.error().message();
        if (outcome && collective != Collective::Barrier) {
          EXPECT_GE(outcome->report.time_ns, 0.999 * outcome->bound.bandwidth_ns)
              << name << " " << algorithm << " " << name_of(collective);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ccom::simtool
