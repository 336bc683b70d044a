// SPDX-License-Identifier: Apache-2.0
//
// What ccom-sim writes: tables, JSON, timeline and heat map of one small case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/sim/output.h"
#include "tools/sim/progress.h"
#include "tools/sim/trace.h"

namespace ccom::simtool {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class Tool : public testing::Test {
 protected:
  void SetUp() override {
    SimOptions options;
    options.keep_intervals = true;
    options.traced_ranks = {0, 5};
    auto outcome = simulate_case(topology_, {Collective::AllReduce, 1 << 20, "swing", false}, options, true);
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
  const auto trace = nlohmann::json::parse(chrome_trace(topology_, outcome_.program, outcome_.report));
  std::set<int> ranks;
  for (const auto& event : trace["traceEvents"]) {
    ranks.insert(event["tid"].get<int>());
    EXPECT_EQ(event["ph"], "X");
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  EXPECT_THAT(ranks, testing::ElementsAre(0, 5));
}

TEST_F(Tool, HeatMapHasARowForEachOfTheBusiestWires) {
  const std::string svg = heat_map(topology_, outcome_.report, "allreduce of 1 MiB", 10);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  size_t rows = 0;
  for (size_t at = 0; (at = svg.find("host 0 link", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, 10u);
  EXPECT_NE(svg.find(">allreduce of 1 MiB</text>"), std::string::npos);
  EXPECT_NE(svg.find(">0 us</text>"), std::string::npos);
}

TEST(Noise, IsRunBesideTheCaseWithoutIt) {
  const Topology topology = *make_topology("torus:4x4");
  SimOptions options;
  options.noise = {.message_ns = 0, .late_ns = 50'000, .seed = 3};
  Case what{Collective::AllReduce, 1 << 20, "swing"};
  what.noisy_runs = 5;
  const auto quiet = simulate_case(topology, {Collective::AllReduce, 1 << 20, "swing"}, {}, true);
  const auto outcome = simulate_case(topology, what, options, true);
  ASSERT_TRUE(quiet && outcome);
  EXPECT_EQ(outcome->report.time_ns, quiet->report.time_ns);
  EXPECT_EQ(outcome->noisy_ns.size(), 5u);
  EXPECT_TRUE(std::ranges::is_sorted(outcome->noisy_ns));
  EXPECT_GT(outcome->noisy_ns[0], quiet->report.time_ns + 50'000) << "the last of sixteen comes after the mean";
  EXPECT_THAT(noise_line(*outcome), HasSubstr("5 runs"));
  EXPECT_EQ(noise_line(*quiet), "");
  EXPECT_EQ(nlohmann::json::parse(to_json(topology, *outcome))["noisy_us"].size(), 5u);
}

TEST(Windows, AreAsManyAsTheCaseAsksFor) {
  const Topology topology = *make_topology("torus:3x5");
  const auto messages = [&](int windows) {
    Case what{Collective::AllReduce, 64 << 20, "torus"};
    what.windows = windows;
    const auto outcome = simulate_case(topology, what, {}, true);
    EXPECT_TRUE(outcome) << outcome.error().message();
    return outcome ? outcome->report.messages : 0;
  };
  EXPECT_EQ(messages(8), 8 * messages(1));
}

TEST(Progress, EstimatesWhatIsLeftByWhatIsDone) {
  EXPECT_EQ(progress_text(0, 12, "allreduce of 8 bytes", 10, 0), "0 of 12 cases, now allreduce of 8 bytes; 10 s");
  EXPECT_EQ(progress_text(3, 12, "x", 31, 30), "3 of 12 cases, now x; 31 s, about 89 s left");
  EXPECT_EQ(progress_text(1, 12, "x", 60, 60), "1 of 12 cases, now x; 60 s, about 11 min left");
  EXPECT_EQ(progress_text(9, 12, "x", 500, 90), "9 of 12 cases, now x; 8 min, at least 20 s left");
}

TEST(Hosts, NodeAndHierarchicalAreAmongTheAlgorithms) {
  const auto names = [](const char* topology) {
    return *legal_algorithms(*make_topology(topology), {Collective::AllReduce, 1 << 20, ""});
  };
  EXPECT_THAT(names("host:4"), Contains("node"));
  for (const char* hosts : {"2*host:4", "host:3+host:5"}) {
    EXPECT_THAT(names(hosts), Contains("hierarchical_sharded"));
    EXPECT_THAT(names(hosts), Contains("hierarchical_leaders"));
    EXPECT_THAT(names(hosts), Contains("ring"));
  }
}

TEST(Hosts, StagesSharesAreOfTheWholeTime) {
  const Topology topology = *make_topology("2*host:4");
  const auto outcome = simulate_case(topology, {Collective::AllReduce, 1 << 20, "hierarchical_sharded"}, {}, true);
  ASSERT_TRUE(outcome) << outcome.error().message();
  const auto object = nlohmann::json::parse(to_json(topology, *outcome));
  ASSERT_EQ(object["stages"].size(), 3u);
  double sum = 0;
  for (const auto& stage : object["stages"]) sum += stage["share"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(object["stages"][1]["where"], "across");
  const std::string table = stage_table(*outcome);
  EXPECT_THAT(table, HasSubstr("stage 0 host   reduce_scatter"));
  EXPECT_THAT(table, HasSubstr("under way"));
}

TEST(Hosts, TheTimelineShowsStagesInside) {
  const Topology topology = *make_topology("2*host:2");
  SimOptions options;
  options.traced_ranks = {0, 3};
  const auto outcome = simulate_case(topology, {Collective::AllReduce, 1 << 16, "hierarchical_sharded"}, options, true);
  ASSERT_TRUE(outcome) << outcome.error().message();
  const auto trace = nlohmann::json::parse(chrome_trace(topology, outcome->program, outcome->report));
  std::set<std::string> inside, peers;
  for (const auto& event : trace["traceEvents"]) {
    if (event["cat"] == "host") inside.insert(event["name"]);
    if (event["cat"] == "transfer" && event["tid"] == 3) peers.insert(event["name"]);
  }
  EXPECT_THAT(inside, ElementsAre("allgather", "reduce_scatter"));
  EXPECT_THAT(peers, Contains("send to 1")) << "peers are ranks, not members of a group";
}

TEST(Hosts, EveryAlgorithmOfEveryCollectiveEnds) {
  for (const char* name : {"host:1", "host:2/1", "2*host:4", "host:3+host:5", "host:1+host:4", "3*host:2+2*host:3"}) {
    const Topology topology = *make_topology(name);
    for (const CollectiveTraits& traits : kCollectiveTraits) {
      if (traits.collective == Collective::SendReceive) continue;
      for (const size_t bytes : {size_t{4096}, size_t{4} << 20}) {
        const Case what{traits.collective, bytes, ""};
        const auto algorithms = legal_algorithms(topology, what);
        ASSERT_TRUE(algorithms) << name << " " << traits.name << ": " << algorithms.error().message();
        for (const std::string& algorithm : *algorithms) {
          const auto outcome = simulate_case(topology, {what.collective, bytes, algorithm, false}, {}, true);
          ASSERT_TRUE(outcome) << name << " " << algorithm << ": " << outcome.error().message();
          EXPECT_GE(outcome->report.time_ns, 0.999 * outcome->bound.time_ns())
              << name << " " << algorithm << " " << traits.name << " " << bytes;
        }
      }
    }
  }
}

// Every rank to the next one: through others where the row ends, in pieces that follow each other.
TEST(Transfers, AreForwardedWhereNoLinkIs) {
  const auto time_of = [](const char* name, size_t bytes, const char* algorithm) {
    const Topology topology = *make_topology(name);
    const auto outcome = simulate_case(topology, {Collective::SendReceive, bytes, ""}, {}, true);
    EXPECT_TRUE(outcome) << name << ": " << outcome.error().message();
    if (!outcome) return 0.0;
    EXPECT_EQ(outcome->program.algorithm, algorithm) << name;
    EXPECT_GE(outcome->report.time_ns, 0.999 * outcome->bound.time_ns()) << name;
    return outcome->report.time_ns;
  };
  const double direct = time_of("ring:6", 1 << 20, "direct");
  time_of("2*host:3", 1 << 20, "direct");
  time_of("2*torus:3x3", 1 << 20, "forwarded");
  // From the end of a row to the beginning of the next one are two hops: a piece of 16 more, and what others send.
  const double forwarded = time_of("torus:3x3", 1 << 20, "forwarded");
  EXPECT_GT(forwarded, 1.05 * direct);
  EXPECT_LT(forwarded, 2.3 * direct);
  EXPECT_LT(time_of("torus:4x4", 64 << 20, "forwarded"), 2.1 * time_of("ring:6", 64 << 20, "direct"));
}

TEST(Hosts, AGivenProgramIsProvedFirst) {
  const Topology topology = *make_topology("2*host:2");
  const Case what{Collective::AllReduce, 1 << 20, "hierarchical_sharded"};
  const auto chosen = simulate_case(topology, what, {}, true);
  ASSERT_TRUE(chosen) << chosen.error().message();
  std::vector<PlanEntry> plans{{.program = chosen->program}};
  const auto given = simulate_given(topology, what, plans, {}, true);
  ASSERT_TRUE(given && *given);
  EXPECT_EQ((*given)->report.time_ns, chosen->report.time_ns);
  plans[0].program.stages.pop_back();
  const auto wrong = simulate_given(topology, what, plans, {}, true);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), HasSubstr("hierarchical_sharded"));
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
        const auto outcome = simulate_case(topology, {what.collective, what.bytes, algorithm, false}, {}, true);
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
