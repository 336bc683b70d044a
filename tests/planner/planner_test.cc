// SPDX-License-Identifier: Apache-2.0
//
// The planner: every candidate it calls legal is proved by the verifier and keeps to the fabric's links; prices rank
// algorithms as theory says; forced names and accuracy rules are obeyed; closed-form costs agree with the plans.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "algorithms/cost.h"
#include "algorithms/stage_plans.h"
#include "base/collective.h"
#include "plan/verify.h"
#include "planner/forced.h"
#include "planner/link_loads.h"
#include "planner/planner.h"
#include "planner/shapes.h"
#include "tests/harness/results.h"
#include "tests/planner/machines.h"

namespace ccom {
namespace {

Topology make_topology(const std::vector<int>& hosts, const std::string& fabric = "") {
  return ranks_on(hosts, {.cpus = 64, .fabric = fabric});
}

constexpr Collective kAll[] = {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
                               Collective::Broadcast, Collective::Reduce,    Collective::AllToAll,
                               Collective::Gather,    Collective::Scatter,   Collective::Barrier};

void prove_all_candidates(const Topology& topology) {
  const int n = topology.nranks();
  for (const Collective collective : kAll) {
    const Rank root = is_rooted(collective) ? n / 2 : -1;
    const Choice choice = value_of(choose(topology, {}, {collective, 1 << 20, false, root}));
    for (const Candidate& candidate : choice.candidates) {
      if (!candidate.legal) continue;
      std::vector<Plan> plans;
      for (Rank r = 0; r < n; ++r)
        plans.push_back(message_plan(candidate.program.stages[0].messages, {collective, r, n, root, false}));
      const Result<VerifyReport> report = verify(plans);
      EXPECT_TRUE(report) << report.error().message();
      for (const Plan& plan : plans) {
        for (const Step& step : plan.steps) {
          if (step.is_transfer()) {
            ASSERT_TRUE(topology.linked(plan.rank, step.peer))
                << name_of(collective) << " " << candidate.program.algorithm << ": " << plan.rank << " -> "
                << step.peer;
          }
        }
      }
    }
  }
}

TEST(Planner, EveryLegalCandidateIsProvedOnPlainHosts) {
  for (const auto& hosts : std::vector<std::vector<int>>{{1}, {2}, {4}, {7}, {2, 2}, {3, 5}, {1, 1, 1}, {4, 4, 4}})
    prove_all_candidates(make_topology(hosts));
}

TEST(Planner, EveryLegalCandidateIsProvedAndStaysOnTheFabricsLinks) {
  prove_all_candidates(make_topology({16}, "torus:4x4"));
  prove_all_candidates(make_topology({32}, "trn1.32xlarge"));
  prove_all_candidates(make_topology({6}, "ring:6"));
  prove_all_candidates(make_topology({5}, "chain:5"));
  prove_all_candidates(make_topology({4}, "full:4"));
  prove_all_candidates(make_topology({12}, "inf2.24xlarge"));
}

// Without a fabric on the first host, the direct exchange inside hosts went across the torus' diagonals on the second.
TEST(Planner, HostsWithAndWithoutAFabricKeepToItsLinksInAnyOrder) {
  prove_all_candidates(*ccom::make_topology("host:4+torus:2x2"));
  prove_all_candidates(*ccom::make_topology("torus:2x2+host:4"));
}

// Priced by the same model as even ones: within a factor of what their links and uplinks let through.
TEST(Planner, UnevenHostsWithFabricsArePricedByTheirLinks) {
  const Topology uneven = *ccom::make_topology("full:4/1+full:3/1");
  const Choice choice = value_of(choose(uneven, {}, {Collective::Broadcast, size_t{16} << 20, false, 0}));
  const double once_ns = (size_t{16} << 20) * 1e9 / uneven.network.bytes_per_second;
  EXPECT_GT(choice.candidates[0].time_ns, once_ns);
  EXPECT_LT(choice.candidates[0].time_ns, 1.5 * once_ns);
}

TEST(Planner, PartlyOccupiedFabricsStillHaveEveryCollective) {
  prove_all_candidates(make_topology({8}, "trn1.32xlarge"));  // one row of devices, two cores each
  prove_all_candidates(make_topology({5}, "trn1.32xlarge"));  // an uneven rest
  prove_all_candidates(make_topology({7}, "torus:4x4"));
}

TEST(Planner, TwoTorusHostsGetAThreeLevelPlan) {
  const Topology topology = make_topology({32, 32}, "trn1.32xlarge");
  const Choice choice = value_of(choose(topology, {}, {Collective::AllReduce, 64 << 20, false, -1}));
  EXPECT_TRUE(choice.program().algorithm.starts_with("hierarchical")) << choice.program().algorithm;
  EXPECT_EQ(choice.program().stages[0].messages.staged.levels.size(), 3U);  // cores, devices, hosts
}

// Simulated: 2.4 ms against 4.2 ms of double_tree for 256 MiB, 40 us against 56 us of cores_circulant for 1 MiB.
TEST(Planner, BehindSeveralSwitchesDevicesExchangeDirectly) {
  const Topology topology = make_topology({576}, "trn3-us-gen2");
  for (const size_t bytes : {size_t{1} << 20, size_t{256} << 20}) {
    EXPECT_EQ(choose(topology, {}, {Collective::AllReduce, bytes, false, -1})->program().algorithm, "cores_direct");
  }
}

// Simulated: 88 us against 105 us round a ring.
TEST(Planner, ShortPartsCrossHostsInOneRound) {
  const Topology topology = make_topology({32, 32, 32, 32}, "trn1.32xlarge");
  const Choice choice = value_of(choose(topology, {}, {Collective::AllGather, 64 << 10, false, -1}));
  EXPECT_TRUE(choice.program().algorithm.ends_with("_radix")) << choice.program().algorithm;
}

TEST(Planner, SmallMessagesGoInOneShotAndLargeOnesDoNot) {
  const Topology topology = make_topology({8});
  EXPECT_EQ(choose(topology, {}, {Collective::AllReduce, 8, false, -1})->program().algorithm, "one_shot");
  EXPECT_NE(choose(topology, {}, {Collective::AllReduce, 64 << 20, false, -1})->program().algorithm, "one_shot");
}

TEST(Planner, LargeMessagesAcrossHostsAreHierarchical) {
  Topology topology = make_topology({8, 8, 8, 8});
  const auto name = [&] {
    return choose(topology, {}, {Collective::AllReduce, 64 << 20, false, -1})->program().algorithm;
  };
  topology.network.bytes_per_second = 16e9;
  EXPECT_EQ(name(), "hierarchical");
  topology.network.bytes_per_second = 1.25e9;
  EXPECT_EQ(name(), "ring") << "one rank's flow fills the wire; eight would take turns on it";
}

TEST(Planner, NarrowFloatsAvoidLongChainsOfRoundings) {
  for (const size_t bytes : {size_t{8}, size_t{1} << 20, size_t{256} << 20}) {
    const Choice choice = value_of(choose(make_topology({16}), {}, {Collective::AllReduce, bytes, true, -1}));
    EXPECT_EQ(choice.candidates[choice.chosen].roundings, 1) << choice.program().algorithm;
    const Result<Choice> hosts = choose(make_topology({4, 4, 4, 4}), {}, {Collective::AllReduce, bytes, true, -1});
    EXPECT_LE(hosts->candidates[hosts->chosen].roundings, 3) << hosts->program().algorithm;
  }
}

TEST(Planner, RoundingsAreWhatTheVerifierCounts) {
  const Topology topology = make_topology({3, 3});
  const Result<Choice> choice = choose(topology, {}, {Collective::AllReduce, 1 << 20, true, -1});
  for (const Candidate& candidate : choice->candidates) {
    if (!candidate.legal) continue;
    std::vector<Plan> plans;
    for (Rank r = 0; r < 6; ++r)
      plans.push_back(message_plan(candidate.program.stages[0].messages, {Collective::AllReduce, r, 6, -1, false}));
    EXPECT_LE(verify(plans)->max_roundings, candidate.roundings) << candidate.program.algorithm;
  }
}

TEST(Planner, ObeysForcedNamesAndExplainsRefusals) {
  const Topology plain = make_topology({4});
  EXPECT_EQ(choose(plain, {.forced = "ring"}, {Collective::AllReduce, 8, false, -1})->program().algorithm, "ring");
  EXPECT_EQ(choose(plain, {.forced = "broadcast:star,allreduce:circulant"}, {Collective::AllReduce, 8, false, -1})
                ->program()
                .algorithm,
            "circulant");
  // A name that another collective has does not disturb this one.
  EXPECT_TRUE(choose(plain, {.forced = "ring"}, {Collective::Broadcast, 8, false, 0}));
  const Status unknown = error_of(choose(plain, {.forced = "rign"}, {Collective::AllReduce, 8, false, -1}));
  EXPECT_EQ(unknown.code(), Code::ConfigError);
  EXPECT_NE(unknown.message().find("recursive_doubling"), std::string::npos) << "names what there is";
  const Status forbidden =
      error_of(choose(make_topology({16}, "torus:4x4"), {.forced = "one_shot"}, {Collective::AllReduce, 8, false, -1}));
  EXPECT_EQ(forbidden.code(), Code::NotSupported);
}

// A bare name is for the collectives that have it; the others choose freely.
TEST(Planner, BareNamesOfFabricAlgorithmsApplyWhereTheyExist) {
  const Topology topology = make_topology({16}, "torus:4x4");
  for (const char* name : {"swing", "swing_latency", "rings", "mixed_radix", "double_tree", "hierarchical_radix"}) {
    EXPECT_TRUE(choose(topology, {.forced = name}, {Collective::Gather, 4096, false, 0})) << name;
  }
  EXPECT_EQ(choose(topology, {.forced = "rings"}, {Collective::AllReduce, 4096, false, -1})->program().algorithm,
            "rings");
  EXPECT_FALSE(choose(topology, {.forced = "swnig"}, {Collective::Gather, 4096, false, 0}));
}

// When a communicator starts: what its calls would refuse, or never notice.
TEST(Planner, RefusesForcedNamesThatDoNotExist) {
  for (const char* right : {"", "ring", "hierarchical", "allreduce:ring,broadcast:tree", "knomial4", "torus"})
    EXPECT_TRUE(check_forced(right).is_ok()) << right << ": " << check_forced(right).message();
  const auto refused = [&](const char* forced, const char* part) {
    const Status status = check_forced(forced);
    EXPECT_EQ(status.code(), Code::ConfigError) << forced;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  };
  refused("rnig", "did you mean ring? There are node, ");
  refused("nonsense:ring", "no collective 'nonsense'; there are allreduce, ");
  refused("alreduce:ring", "did you mean allreduce?");
  refused("allreduce:rnig", "did you mean ring?");
}

TEST(Planner, TellsForcedNamesThatNoCallCanUse) {
  const auto useless = [](const Topology& topology, const char* forced) {
    return useless_part(topology, {.shared_memory = true}, forced);
  };
  const Topology pair = make_topology({2});
  for (const char* right : {"", "ring", "allreduce:ring,broadcast:tree", "knomial4"})
    EXPECT_EQ(useless(pair, right), "") << right;
  EXPECT_EQ(useless(make_topology({16}, "torus:4x4"), "swing"), "");
  EXPECT_EQ(useless(make_topology({1}), "swing"), "") << "one rank sends nothing";
  EXPECT_NE(useless(pair, "hierarchical").find("no call of these 2 ranks can use it"), std::string::npos);
  EXPECT_NE(useless(pair, "ring,broadcast:torus").find("broadcast has no algorithm 'torus'"), std::string::npos);
}

TEST(Planner, SendsShortAlltoallsOfManyHostsInFewRounds) {
  const auto chosen = [](const std::vector<int>& hosts, size_t bytes) {
    return value_of(choose(make_topology(hosts), {.shared_memory = true}, {Collective::AllToAll, bytes, false, -1}))
        .program()
        .algorithm;
  };
  const std::vector<int> many(128, 1), many_of_four(64, 4);
  EXPECT_EQ(chosen(many, size_t{8} << 10), "bruck");
  EXPECT_EQ(chosen(many_of_four, size_t{8} << 10), "bine") << "its messages leave hosts less often";
  EXPECT_EQ(chosen(std::vector<int>(60, 4), size_t{8} << 10), "bruck") << "for any number of ranks";
  EXPECT_EQ(chosen(many, size_t{4} << 20), "pairwise");
  EXPECT_EQ(chosen(many_of_four, size_t{4} << 20), "hierarchical_sharded");
  EXPECT_EQ(chosen({1, 1, 1, 1}, 64), "pairwise");
  EXPECT_EQ(chosen({4, 4}, 64), "hierarchical_sharded");
  const Status on_fabric = error_of(
      choose(make_topology({4}, "full:4"), {.forced = "alltoall:bruck"}, {Collective::AllToAll, 1024, false, -1}));
  EXPECT_EQ(on_fabric.code(), Code::NotSupported);
}

TEST(Planner, ExplainsInJson) {
  const Question question{Collective::AllReduce, 1 << 20, false, -1};
  const Result<Choice> choice = choose(make_topology({4}), {}, question);
  EXPECT_NE(explain_json(question, *choice).find("\"algorithm\":\"" + choice->program().algorithm), std::string::npos);
}

// Names of users' topologies and plans are parts of notes.
TEST(Planner, ExplainsInJsonWhateverTheNotesSay) {
  const Question question{Collective::AllReduce, 1 << 20, false, -1};
  Result<Choice> choice = choose(make_topology({4}), {}, question);
  const std::string hostile = "\"quoted\" \\ \n \x01 \xff \xe2\x82\xac";
  choice->reason = choice->candidates[0].note = choice->candidates[0].program.algorithm = hostile;
  Details details;
  details.why.assign(choice->candidates.size(), hostile);
  details.notes = details.why;
  details.chosen.note = details.chosen.busiest = hostile;
  details.chosen.kinds.push_back({.name = hostile + std::string(1000, 'x')});
  const nlohmann::json read = nlohmann::json::parse(explain_json(question, *choice, &details), nullptr, false);
  ASSERT_FALSE(read.is_discarded());
  const std::string replaced = "\"quoted\" \\ \n \x01 \xef\xbf\xbd \xe2\x82\xac";
  EXPECT_EQ(read["candidates"][0]["note"], replaced);
  EXPECT_EQ(read["candidates"][0]["why"], replaced);
  EXPECT_EQ(read["links"][0]["kind"], replaced + std::string(1000, 'x'));
}

TEST(Cost, CountsTheBytesThatThePlansSend) {
  for (const int n : {2, 3, 4, 5, 8, 16}) {
    const auto sent = [n](Pattern pattern, bool core) {
      Staged shape;
      (core ? shape.core : shape.levels).push_back(flat_level(pattern, n));
      std::vector<Plan> plans;
      for (Rank r = 0; r < n; ++r) plans.push_back(staged_plan({Collective::AllReduce, r, n, -1, false}, shape, ""));
      return static_cast<double>(verify(plans)->max_sent_blocks) / plans[0].blocks_per_unit;
    };
    EXPECT_DOUBLE_EQ(sent(Pattern::Ring, false), (ring_reduce_scatter_cost(n, 1) + ring_allgather_cost(n, 1)).bytes);
    EXPECT_DOUBLE_EQ(sent(Pattern::Direct, false),
                     (direct_reduce_scatter_cost(n, 1) + direct_allgather_cost(n, 1)).bytes);
    EXPECT_DOUBLE_EQ(sent(Pattern::Circulant, false),
                     (circulant_reduce_scatter_cost(n, 1) + circulant_allgather_cost(n, 1)).bytes);
    EXPECT_DOUBLE_EQ(sent(Pattern::OneShot, true), one_shot_cost(n, 1).bytes);
    EXPECT_LE(sent(Pattern::RecursiveDoubling, true), recursive_doubling_cost(n, 1).bytes);
  }
}

TEST(Shapes, SquareTorusIsAsSquareAsItCanBe) {
  EXPECT_EQ(square_torus(16).dims[0], 4);
  EXPECT_EQ(square_torus(12).dims[0], 3);
  EXPECT_EQ(square_torus(7).dims[0], 1);
}

}  // namespace
}  // namespace ccom
