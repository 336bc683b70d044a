// SPDX-License-Identifier: Apache-2.0
//
// Every plan through shared memory is proved, and the prover is shown to reject what is wrong.
#include "algorithms/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/node_verify.h"

namespace ccom {
namespace {

using testing::HasSubstr;

constexpr std::array kCollectives = {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter,
                                     Collective::Broadcast, Collective::Reduce,    Collective::AllToAll,
                                     Collective::Gather,    Collective::Scatter,   Collective::Barrier};

std::vector<NodePlan> plans_of(Collective collective, int nranks, const NodeShape& shape, std::vector<Reach> reach,
                               bool in_place, Rank root) {
  const bool is_one_shot = shape.scheme == NodeScheme::OneShot;
  if ((collective == Collective::AllToAll || is_one_shot) && in_place) {
    for (Reach& r : reach) r.input = false;
  }
  std::vector<NodePlan> plans;
  for (Rank rank = 0; rank < nranks; ++rank) {
    plans.push_back(node_plan(node_task(collective, nranks, root), rank, in_place, shape, reach));
  }
  return plans;
}

NodeCallPlans call_of(const std::vector<NodePlan>& plans, size_t tiles) {
  return {node_task(plans[0].collective, plans[0].nranks, plans[0].root), plans, tiles};
}

// Two equal calls with something else between and after them, so that banks are reused under all circumstances.
Status proof(const std::vector<NodePlan>& plans, size_t tiles) {
  const int nranks = plans[0].nranks;
  const std::vector<Reach> none(static_cast<size_t>(nranks));
  const auto small = plans_of(Collective::AllReduce, nranks, {NodeScheme::OneShot, {}}, none, false, -1);
  const auto large = plans_of(Collective::AllReduce, nranks, {NodeScheme::TwoShot, {}}, none, true, -1);
  const std::array calls = {call_of(plans, tiles), call_of(small, 1), call_of(plans, tiles), call_of(large, 2),
                            call_of(plans, 1),     call_of(small, 1), call_of(small, 1),     call_of(plans, tiles)};
  const Result<NodeReport> report = verify_node(calls);
  return report ? Status() : report.error();
}

std::vector<Reach> random_reach(int nranks, std::mt19937& random) {
  std::vector<Reach> reach;
  for (int r = 0; r < nranks; ++r) reach.push_back({random() % 2 == 0, random() % 2 == 0});
  return reach;
}

NodeScheme scheme_for(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::Reduce ? NodeScheme::TwoShot
                                                                                 : NodeScheme::Direct;
}

TEST(NodePlans, EveryCollectiveWithEveryMixOfReachIsProved) {
  std::mt19937 random(7);
  for (const Collective collective : kCollectives) {
    for (int nranks = 2; nranks <= 7; ++nranks) {
      for (int mix = 0; mix < (nranks <= 2 ? 16 : 12); ++mix) {
        std::vector<Reach> reach(static_cast<size_t>(nranks));
        for (int r = 0; nranks == 2 && r < 2; ++r) {
          reach[static_cast<size_t>(r)] = {(mix >> (2 * r) & 1) != 0, (mix >> (2 * r) & 2) != 0};
        }
        if (nranks > 2 && mix > 1) reach = random_reach(nranks, random);
        if (nranks > 2 && mix == 1) std::ranges::fill(reach, Reach{true, true});
        for (const bool in_place : {false, true}) {
          for (const bool whole : {false, true}) {
            const auto plans = plans_of(collective, nranks, {scheme_for(collective), {}, whole}, reach, in_place,
                                        static_cast<Rank>(mix % nranks));
            for (const size_t tiles : {size_t{1}, size_t{2}, size_t{5}}) {
              const Status status = proof(plans, tiles);
              ASSERT_TRUE(status.is_ok())
                  << status.message() << ", mix " << mix << ", tiles " << tiles << ", in place " << in_place;
            }
          }
        }
      }
    }
  }
}

TEST(NodePlans, OneShotReadsInputsWhereTheyLie) {
  std::mt19937 random(17);
  for (const int nranks : {2, 3, 6}) {
    for (int mix = 0; mix < 20; ++mix) {
      std::vector<Reach> reach = random_reach(nranks, random);
      if (mix == 0) std::ranges::fill(reach, Reach{true, false});
      for (Reach& each : reach) each.output = false;
      for (const Collective collective : {Collective::AllReduce, Collective::Reduce}) {
        const auto plans =
            plans_of(collective, nranks, {NodeScheme::OneShot, {}, mix % 2 == 1}, reach, mix % 3 == 2, 0);
        for (const size_t tiles : {size_t{1}, size_t{3}}) {
          const Status status = proof(plans, tiles);
          ASSERT_TRUE(status.is_ok()) << status.message() << ", mix " << mix;
        }
      }
    }
  }
}

TEST(NodePlans, PullIsProved) {
  std::mt19937 random(19);
  for (const int nranks : {2, 3, 6}) {
    for (int mix = 0; mix < 12; ++mix) {
      std::vector<Reach> reach = random_reach(nranks, random);
      if (mix < 4) std::ranges::fill(reach, Reach{true, false});
      for (Reach& each : reach) each.output = false;
      const auto plans = plans_of(Collective::AllReduce, nranks, {NodeScheme::Pull, {}}, reach, mix % 2 == 1, -1);
      for (const size_t tiles : {size_t{1}, size_t{3}}) {
        const Status status = proof(plans, tiles);
        ASSERT_TRUE(status.is_ok()) << status.message() << ", mix " << mix;
      }
    }
  }
}

TEST(NodePlans, SmallSchemesAreProvedAndGiveOneExpression) {
  for (const int nranks : {2, 3, 8, 16, 33}) {
    std::vector<std::vector<Rank>> groups;
    for (Rank rank = 0; rank < nranks; ++rank) {
      if (rank % 5 == 0) groups.emplace_back();
      groups.back().push_back(rank);
    }
    const std::vector<Reach> none(static_cast<size_t>(nranks));
    for (const Collective collective : {Collective::AllReduce, Collective::Reduce}) {
      for (const NodeScheme scheme : {NodeScheme::OneShot, NodeScheme::GatherRelease}) {
        for (const bool in_place : {false, true}) {
          const auto plans = plans_of(collective, nranks, {scheme, groups}, none, in_place, nranks - 1);
          const Status status = proof(plans, 1);
          ASSERT_TRUE(status.is_ok()) << status.message();
          const NodeCallPlans call = call_of(plans, 1);
          EXPECT_EQ(verify_node({&call, 1})->max_roundings, 1);
        }
      }
    }
  }
}

// A rank whose input nobody reaches begins a call before it knows whom it can reach itself.
TEST(NodePlans, BeginTheSameWhateverOthersReach) {
  std::mt19937 random(11);
  const int nranks = 5;
  const auto bytes = [](const NodePhase& phase, uint32_t parts) {  // input to stage, as shares of a unit
    std::vector<std::tuple<Area, Area, double, double>> copies;
    for (const NodeStep& step : phase.steps) {
      for (uint32_t i = 0; i < step.count; ++i) {
        copies.emplace_back(step.sources[0].area, step.targets[0].area, (step.source_piece + i) * 60 / parts,
                            60 / parts);
      }
    }
    return copies;
  };
  for (const Collective collective : kCollectives) {
    for (int mix = 0; mix < 40; ++mix) {
      std::vector<Reach> reach = random_reach(nranks, random);
      const auto rank = static_cast<Rank>(mix % nranks);
      reach[static_cast<size_t>(rank)].input = false;
      const std::vector<Reach> none(nranks);
      const NodeTask task = node_task(collective, nranks, static_cast<Rank>(random() % nranks));
      const NodeScheme scheme = scheme_for(collective);
      const NodePlan known = node_plan(task, rank, false, {scheme, {}}, reach);
      const NodePlan unknown = node_plan(task, rank, false, {scheme, {}}, none);
      EXPECT_EQ(bytes(known.phases[0], known.parts), bytes(unknown.phases[0], unknown.parts));
      if (scheme != NodeScheme::TwoShot) continue;
      const NodePlan one_shot = node_plan(task, rank, false, {NodeScheme::OneShot, {}, true}, none);
      const NodePlan two_shot = node_plan(task, rank, false, {NodeScheme::TwoShot, {}, true}, reach);
      ASSERT_EQ(one_shot.phases[0].steps.size(), 1U);
      ASSERT_EQ(two_shot.phases[0].steps.size(), 1U) << name_of(collective);
      EXPECT_EQ(one_shot.phases[0].steps[0].sources, two_shot.phases[0].steps[0].sources);
      EXPECT_EQ(one_shot.phases[0].steps[0].targets, two_shot.phases[0].steps[0].targets);
      EXPECT_EQ(one_shot.phases[0].steps[0].count / one_shot.parts, two_shot.phases[0].steps[0].count / two_shot.parts);
    }
  }
}

// A synthetic machine: 2 sockets of 2 memory domains of 4 cores, and others.
TEST(NodePlans, DomainsAreProvedForSyntheticMachines) {
  std::mt19937 random(3);
  for (const auto& [domains, size] : {std::pair{2, 1}, {2, 3}, {4, 4}, {3, 5}, {8, 2}}) {
    const int nranks = domains * size;
    for (const bool scattered : {false, true}) {
      std::vector<std::vector<Rank>> groups(static_cast<size_t>(domains));
      for (Rank rank = 0; rank < nranks; ++rank) {
        groups[static_cast<size_t>(scattered ? rank % domains : rank / size)].push_back(rank);
      }
      for (int mix = 0; mix < 6; ++mix) {
        std::vector<Reach> reach = random_reach(nranks, random);
        if (mix == 0) std::ranges::fill(reach, Reach{});
        if (mix == 1) std::ranges::fill(reach, Reach{true, true});
        for (const size_t tiles : {size_t{1}, size_t{4}}) {
          const auto plans =
              plans_of(Collective::AllReduce, nranks, {NodeScheme::Domains, groups}, reach, mix % 2 == 0, -1);
          const Status status = proof(plans, tiles);
          ASSERT_TRUE(status.is_ok()) << status.message() << ", mix " << mix;
          const NodeCallPlans call = call_of(plans, tiles);
          EXPECT_LE(verify_node({&call, 1})->max_roundings, 2);
        }
      }
    }
  }
}

// Cross-domain traffic is what domains are for: pieces that a rank loads from ranks of other domains, over the vector.
TEST(NodePlans, DomainsReadLessFromOtherDomains) {
  const int nranks = 16;
  std::vector<std::vector<Rank>> groups(2);
  for (Rank rank = 0; rank < nranks; ++rank) groups[static_cast<size_t>(rank / 8)].push_back(rank);
  const std::vector<Reach> none(nranks);
  const auto remote = [&](NodeScheme scheme) {
    double vectors = 0;
    for (const NodePlan& plan : plans_of(Collective::AllReduce, nranks, {scheme, groups}, none, false, -1)) {
      for (const NodePhase& phase : plan.phases) {
        for (const NodeStep& step : phase.steps) {
          for (const Operand& source : step.sources) {
            if (source.owner / 8 != plan.rank / 8) vectors += static_cast<double>(step.count) / plan.parts;
          }
        }
      }
    }
    return vectors;
  };
  EXPECT_DOUBLE_EQ(remote(NodeScheme::TwoShot), 8 + 8);  // half of all parts read, half of all results fetched
  EXPECT_DOUBLE_EQ(remote(NodeScheme::Domains), 2);      // every domain the other's sums
}

TEST(NodePlans, TwoShotMovesTheLeastWhenAllIsReached) {
  const int nranks = 4;
  const std::vector<Reach> all(nranks, Reach{true, true});
  double touched = 0;  // vectors
  for (const NodePlan& plan : plans_of(Collective::AllReduce, nranks, {NodeScheme::TwoShot, {}}, all, false, -1)) {
    EXPECT_FALSE(plan.staged);
    for (const NodePhase& phase : plan.phases) {
      for (const NodeStep& step : phase.steps) {
        touched += static_cast<double>((step.sources.size() + step.targets.size()) * step.count) / plan.parts;
      }
    }
  }
  EXPECT_DOUBLE_EQ(touched, 2.0 * nranks);
}

// ---- The prover rejects ---------------------------------------------------------------------------------------------

std::vector<NodePlan> good() {
  return plans_of(Collective::AllReduce, 3, {NodeScheme::TwoShot, {}}, {{}, {true, true}, {}}, false, -1);
}

// Of two ranks the other one is the only reader of everything; of three, of what goes into a rank's sums.
TEST(NodePlans, SayWhoReadsStagingMemoryLast) {
  const auto last_readers = [](int ranks, Collective collective, NodeScheme scheme) {
    const std::vector<Reach> none(static_cast<size_t>(ranks));
    std::pair<int, int> found;  // those steps, all steps that read others' staging memory
    for (const NodePlan& plan : plans_of(collective, ranks, {scheme, {}}, none, false, -1)) {
      for (const NodePhase& phase : plan.phases) {
        for (const NodeStep& step : phase.steps) {
          found.first += step.is_last_reader ? 1 : 0;
          found.second += std::ranges::any_of(step.sources, [&](const Operand& source) {
            return source.owner != plan.rank && source.area != Area::Input;
          });
        }
      }
    }
    return found;
  };
  EXPECT_EQ(last_readers(2, Collective::AllReduce, NodeScheme::TwoShot), std::pair(4, 4));
  EXPECT_EQ(last_readers(3, Collective::AllReduce, NodeScheme::TwoShot), std::pair(3, 9));
  EXPECT_EQ(last_readers(2, Collective::AllReduce, NodeScheme::OneShot), std::pair(2, 2));
  EXPECT_EQ(last_readers(3, Collective::AllReduce, NodeScheme::OneShot), std::pair(0, 3));
  EXPECT_EQ(last_readers(2, Collective::AllGather, NodeScheme::Direct), std::pair(2, 2));
  EXPECT_EQ(last_readers(3, Collective::AllGather, NodeScheme::Direct), std::pair(0, 6));
  EXPECT_EQ(last_readers(3, Collective::AllToAll, NodeScheme::Direct), std::pair(6, 6));
  EXPECT_EQ(last_readers(3, Collective::ReduceScatter, NodeScheme::Direct), std::pair(3, 3));
}

TEST(NodeProver, RejectsAMissingWait) {
  for (size_t phase = 0; phase < 2; ++phase) {
    for (size_t rank = 0; rank < 3; ++rank) {
      auto plans = good();
      plans[rank].phases[phase].waits_for.pop_back();
      for (NodePlan& plan : plans) {
        for (NodePhase& each : plan.phases) each.is_full = false;
      }
      EXPECT_THAT(proof(plans, 1).message(),
                  testing::AnyOf(HasSubstr("race"), HasSubstr("returns while"), HasSubstr("overwritten before")))
          << phase << " " << rank;
    }
  }
}

TEST(NodeProver, RejectsASingleFault) {
  using Plans = std::vector<NodePlan>;
  const std::pair<const char*, void (*)(Plans&)> faults[] = {
      {"a full barrier", [](Plans& plans) { plans[1].phases[0].waits_for.pop_back(); }},
      {"does not announce", [](Plans& plans) { plans[1].phases[0].is_silent = true; }},
      {"different contributions", [](Plans& plans) { plans[1].phases[1].steps[0].sources.pop_back(); }},
      {"different contributions",
       [](Plans& plans) {
         auto& sources = plans[2].phases[1].steps[0].sources;
         sources.push_back(sources.front());
       }},
      {"",  // a forgotten target
       [](Plans& plans) {
         auto& targets = plans[0].phases[1].steps[0].targets;
         targets.erase(targets.begin() + 1);
       }},
      {"another rank's staging memory", [](Plans& plans) { plans[0].phases[0].steps[0].targets[0].owner = 1; }},
      {"unequally often", [](Plans& plans) { plans[1].phases.pop_back(); }}};
  for (const auto& [says, damage] : faults) {
    Plans plans = good();
    damage(plans);
    const Status status = proof(plans, 1);
    EXPECT_FALSE(status.is_ok()) << says;
    EXPECT_THAT(status.message(), HasSubstr(says));
  }
}

// As when a member of a group runs ahead of another group's leader.
TEST(NodeProver, RejectsALineThatIsOverwrittenUnheard) {
  const std::vector<Reach> none(4);
  auto plans = plans_of(Collective::AllReduce, 4, {NodeScheme::GatherRelease, {{0, 1}, {2, 3}}}, none, false, -1);
  for (NodePlan& plan : plans) plan.phases[1].is_silent = false;
  EXPECT_THAT(proof(plans, 1).message(), HasSubstr("overwritten before"));
}

TEST(NodeProver, RejectsAnotherOrderOfSummation) {
  const std::vector<Reach> none(3);
  auto plans = plans_of(Collective::AllReduce, 3, {NodeScheme::OneShot, {}}, none, false, -1);
  auto& sources = plans[0].phases[1].steps[0].sources;
  std::swap(sources[0], sources[2]);
  EXPECT_THAT(proof(plans, 1).message(), HasSubstr("different expressions"));
}

TEST(NodeProver, RejectsAReturnWhileOthersRead) {
  const std::vector<Reach> all(3, Reach{true, false});
  auto plans = plans_of(Collective::AllGather, 3, {NodeScheme::Direct, {}}, all, false, -1);
  for (NodePlan& plan : plans) {
    plan.phases.pop_back();
    plan.phases.back().waits_for.clear();
    plan.phases.back().is_full = false;
  }
  EXPECT_THAT(proof(plans, 1).message(), HasSubstr("still read its input"));
}

TEST(NodeProver, RejectsALastReaderThatIsNotTheOnlyOne) {
  const std::vector<Reach> none(3);
  auto plans = plans_of(Collective::AllReduce, 3, {NodeScheme::TwoShot, {}}, none, false, -1);
  plans[1].phases[2].steps[0].is_last_reader = true;  // of a sum that two ranks copy
  EXPECT_THAT(proof(plans, 1).message(), testing::AnyOf(HasSubstr("race"), HasSubstr("nobody has written")));
}

// A rank's own contribution to its domain's sums: it reads that as well.
TEST(NodeProver, RejectsALastReaderOfWhatItsOwnerReads) {
  const std::vector<Reach> none(4);
  auto plans = plans_of(Collective::AllReduce, 4, {NodeScheme::Domains, {{0, 1}, {2, 3}}}, none, false, -1);
  ASSERT_TRUE(proof(plans, 1).is_ok());
  plans[0].phases[2].steps[0].is_last_reader = true;
  EXPECT_FALSE(proof(plans, 1).is_ok());
}

TEST(NodeProver, RejectsAnInPlaceInputThatOthersReadWhileItIsOverwritten) {
  const std::vector<Reach> all(3, Reach{true, true});
  auto plans = plans_of(Collective::AllToAll, 3, {NodeScheme::Direct, {}}, all, false, -1);
  for (NodePlan& plan : plans) plan.in_place = true;
  EXPECT_THAT(proof(plans, 1).message(), HasSubstr("race"));
}

}  // namespace
}  // namespace ccom
