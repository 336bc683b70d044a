// SPDX-License-Identifier: Apache-2.0
//
// Plan files: whatever choose() lists comes back from its JSON; the example is proved, and refused with a step dropped;
// malformed files are refused with the place and the reason.
#include "planner/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "algorithms/stage_plans.h"
#include "base/collective.h"
#include "plan/program_verify.h"
#include "planner/plan_text.h"
#include "tests/harness/folder.h"
#include "tests/harness/paths.h"
#include "tests/harness/results.h"

namespace ccom {
namespace {

using testing::HasSubstr;

const StagePlanSource kPlans{stage_plan, stage_node_plan};
const std::string kExample = source_dir() / "examples/plans/recursive_doubling_4.json";

std::string complaint(const std::string& text) { return message_of(plans_from_json(text)); }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PlanFile, EveryCandidateComesBack) {
  size_t programs = 0;
  for (const char* name : {"host:1", "host:4", "2*host:2", "host:3+host:5", "host:1+host:4", "3*host:2", "torus:4x4",
                           "torus:3x5", "switch:6", "trn1.32xlarge", "4*trn2.48xlarge/1", "2*trn1.32xlarge/1"}) {
    const Topology topology = *make_topology(name);
    for (const CollectiveTraits& traits : kCollectiveTraits) {
      if (traits.collective == Collective::SendReceive) continue;
      const Rank root = is_rooted(traits.collective) ? topology.nranks() - 1 : -1;
      for (const size_t bytes : {size_t{64}, size_t{8} << 20}) {
        for (const bool shared_memory : {true, false}) {
          const auto choice = choose(topology, {.shared_memory = shared_memory},
                                     {.collective = traits.collective, .bytes = bytes, .root = root});
          ASSERT_TRUE(choice) << name << " " << traits.name << ": " << choice.error().message();
          for (const Candidate& candidate : choice->candidates) {
            if (!candidate.legal) continue;
            const std::vector<PlanEntry> entries{{candidate.program, bytes, bytes * 2}};
            const auto read = plans_from_json(to_json(entries));
            ASSERT_TRUE(read) << name << " " << traits.name << " " << candidate.program.algorithm << ": "
                              << read.error().message();
            EXPECT_TRUE(*read == entries) << name << " " << traits.name << " " << candidate.program.algorithm;
            ++programs;
          }
        }
      }
    }
  }
  EXPECT_GT(programs, 500u);
}

// As lists of steps, too.
TEST(PlanFile, ATreeThatGathersComesBack) {
  const Topology topology = *make_topology("torus:3x5");
  const auto choice =
      value_of(choose(topology, {.forced = "gather_tree"}, {.collective = Collective::AllReduce, .bytes = 64}));
  EXPECT_TRUE(choice.program().stages[0].messages.tree.gathers);
  const std::vector<PlanEntry> entries{{choice.program(), 64, 128}};
  const auto read = value_of(plans_from_json(to_json(entries)));
  EXPECT_EQ(read, entries);
}

TEST(PlanFile, EveryStepComesBack) {
  size_t steps = 0;
  const Topology topology = *make_topology("trn1.32xlarge");
  for (const Collective collective : {Collective::AllReduce, Collective::ReduceScatter, Collective::Gather}) {
    const Choice choice = *choose(topology, {}, {.collective = collective, .bytes = 4096, .root = 0});
    for (const Candidate& candidate : choice.candidates) {
      if (!candidate.legal) continue;
      for (const Rank rank : {0, 17}) {
        for (const Step& step :
             message_plan(candidate.program.stages[0].messages, {collective, rank, 32, 0, false}).steps) {
          const auto read = step_from(plan_text(step));
          ASSERT_TRUE(read) << plan_text(step);
          EXPECT_EQ(plan_text(*read), plan_text(step));
          EXPECT_EQ(read->block, step.block) << plan_text(step);
          EXPECT_EQ(read->count, step.count) << plan_text(step);
          ++steps;
        }
      }
    }
  }
  EXPECT_GT(steps, 1000u);
  for (const char* text :
       {"", "send", "send in[0]", "send in[0] -> rank", "send in[0] -> rank 1 x", "copy out[0] = in[0..1]",
        "recv out[2..1] <- rank 0", "send in[0] -> rank 1 channel 256", "reduce out[0] = tmp[0] + tmp[2]",
        "copy out[99999999999] = in[0]", "send mid[0] -> rank 1"}) {
    EXPECT_FALSE(step_from(text)) << text;
  }
}

TEST(PlanFile, TheExampleIsProved) {
  const auto entries = value_of(read_plan_file(kExample));
  const auto proof = value_of(verify_program(entries[0].program, kPlans));
  EXPECT_EQ(proof.max_roundings, 2);
}

TEST(PlanFile, ADroppedStepIsRefusedByTheMissingContribution) {
  std::string text = contents_of(kExample);
  text = replaced(text, "\"send tmp[0] -> rank 2\",", "");
  text = replaced(text, "\"recv-reduce out[0] = tmp[0] + rank 0, complete\"", "\"copy out[0] = tmp[0], complete\"");
  const auto entries = value_of(plans_from_json(text));
  EXPECT_THAT(error_of(verify_program(entries[0].program, kPlans)).message(), HasSubstr("contribution"));
}

// By the same prices as the algorithm that it spells out, which prices rounds inside hosts as if they crossed.
TEST(PlanFile, IsPricedByItsSteps) {
  for (const char* name : {"host:4", "2*host:2", "4*host:1", "full:4"}) {
    const Topology topology = *make_topology(name);
    for (const size_t bytes : {size_t{8}, size_t{1} << 20}) {
      const Question question{.bytes = bytes};
      const auto given = value_of(choose(topology, {.plans = *read_plan_file(kExample)}, question));
      const auto ours = choose(topology, {.forced = "recursive_doubling"}, question);
      const double ratio = given.candidates[0].time_ns / ours->candidates[ours->chosen].time_ns;
      EXPECT_THAT(ratio, testing::AllOf(testing::Gt(0.4), testing::Lt(2))) << name << " " << bytes;
    }
  }
}

TEST(PlanFile, ServesACollectiveAndARangeOfSizes) {
  const auto entries = *read_plan_file(kExample);
  const auto found = [&](Collective collective, size_t bytes, int nranks) {
    return find_entry(entries, {.collective = collective, .bytes = bytes}, nranks) != nullptr;
  };
  EXPECT_TRUE(found(Collective::AllReduce, 0, 4));
  EXPECT_TRUE(found(Collective::AllReduce, 1 << 20, 4));
  EXPECT_FALSE(found(Collective::AllReduce, (1 << 20) + 1, 4));
  EXPECT_FALSE(found(Collective::AllReduce, 8, 5));
  EXPECT_FALSE(found(Collective::Reduce, 8, 4));
}

TEST(PlanFile, SaysWhatIsMalformed) {
  const std::string text = contents_of(kExample);
  EXPECT_EQ(complaint(text), "");
  const std::map<std::string, std::pair<std::string, std::string>> wrong{
      {"\"version\": 1", {"\"version\": 2", "version: expected an integer from 1 to 1"}},
      {"\"allreduce\"", {"\"sum\"", "plans[0].collective: is no collective"}},
      {"\"nranks\": 4", {"\"nranks\": 3", "plans[0].program.stages[0].messages.plans: expected a list of 3 elements"}},
      {"\"nranks\"", {"\"ranks\"", "plans[0].nranks: missing"}},
      {"\"from\": 0", {"\"from\": 9999999", "plans[0].bytes.to"}},
      {"\"algorithm\"", {"\"color\": 1, \"algorithm\"", "plans[0].program.color: unknown key"}},
      {"\"all\"", {"\"here\"", "plans[0].program.stages[0].where: expected one of host, across, all"}},
      {"\"all\"", {"\"across\"", "plans[0].program.stages[0].collective: missing"}},
      {"\"explicit\"", {"\"tree\"", "plans[0].program.stages[0].messages.tree: missing"}},
      {"send in[0] -> rank 1",
       {"sent in[0] to 1", "plans[0].program.stages[0].messages.plans[0].steps[0]: is no step"}},
      {"send in[0] -> rank 1", {"send in[0] -> rank 0", "there is no other rank 0"}},
      {"send in[0] -> rank 1", {"send in[0] -> rank 4", "there is no other rank 4"}},
      {"{", {"[", "JSON"}}};
  for (const auto& [from, to] : wrong) {
    EXPECT_THAT(complaint(replaced(text, from, to.first)), HasSubstr(to.second)) << from << " -> " << to.first;
  }
  EXPECT_THAT(read_plan_file("no_such_plans.json").error().message(), HasSubstr("no_such_plans.json"));
}

// Values of a program over hosts that make no sense.
TEST(PlanFile, RefusesShapesThatNoPlanCanBeMadeFrom) {
  const auto text_of = [](const char* topology, const char* algorithm, Collective collective) {
    const Rank root = is_rooted(collective) ? 0 : -1;
    const Choice choice = value_of(choose(*make_topology(topology), {.forced = algorithm, .shared_memory = true},
                                          {.collective = collective, .bytes = 1 << 20, .root = root}));
    return to_json({{choice.program()}});
  };
  const std::string sharded = text_of("2*host:2", "hierarchical_sharded", Collective::AllReduce);
  const std::string ring = text_of("host:4", "ring", Collective::AllReduce);
  const std::string tree = text_of("host:4", "binomial", Collective::Broadcast);
  const std::string columns = text_of("ring:4", "columns", Collective::Reduce);
  const std::vector<std::tuple<std::string, std::string, std::string, std::string>> cases{
      {sharded, "\"0@in[0]\"", "\"2@in[0]\"", "there are 2 blocks"},
      {sharded, "@tmp[0]", "@tmp[7]", "there are 1 places"},
      {sharded, "\"scheme\": \"", "\"scheme\": \"x", "expected one of one_shot"},
      {sharded, "\"groups\": [", "\"groups\": [[[0, 0, 99]],", "groups[0][0][2]: expected an integer"},
      {ring, "\"groups\": [", "\"owners\": 3, \"groups\": [", "a group of 4 members with 3 owners"},
      {ring, "\"pattern\": \"ring\"", "\"pattern\": \"torus\"", "dimensions whose product is 4"},
      {ring, "\"pattern\": \"ring\"", "\"pattern\": \"one_shot\"", "does not belong there"},
      {text_of("host:3", "ring", Collective::AllReduce), "\"pattern\": \"ring\"", "\"pattern\": \"bine\"",
       "bine needs groups of a power of two of ranks"},
      {tree, "\"tree\": {\n        \"root\": 0", "\"tree\": {\n        \"root\": 1", "is not the stage's root"},
      {tree, "\"chunks\": ", "\"chunks\": -", "chunks: expected an integer"},
      {columns, "\"lead\": [", "\"lead\": [7, ", "lead: expected 4 ranks"},
      {columns, "\"egress\": [", "\"egress\": [7, ", "egress: expected 4 ranks"},
      {columns, "\"lead\": [\n          0", "\"lead\": [\n          9999", "has less than rank 0, its parent"},
      {columns, "\"lead\": [", "\"gathers\": true, \"lead\": [", "is for sums of a reduce"}};
  for (const auto& [text, from, to, what] : cases) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in\n" << text;
    EXPECT_THAT(complaint(replaced(text, from, to)), HasSubstr(what)) << from << " -> " << to;
  }
}

TEST(PlanFile, HostStagesFitTheirHosts) {
  const Topology pairs = *make_topology("2*host:2");
  const auto choice = value_of(choose(pairs, {.forced = "hierarchical_sharded", .shared_memory = true},
                                      {.collective = Collective::AllReduce, .bytes = 1 << 20}));
  EXPECT_TRUE(check_hosts(choice.program(), pairs).is_ok());
  const Status other = check_hosts(choice.program(), *make_topology("host:1+host:3"));
  EXPECT_EQ(other.code(), Code::NotSupported);
  EXPECT_THAT(other.message(), HasSubstr("not all ranks of its host"));
}

}  // namespace
}  // namespace ccom
