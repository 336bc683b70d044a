// SPDX-License-Identifier: Apache-2.0
//
// What the verifier sees where all ranks agree on what is wrong, and where it follows only some of the blocks.
#include <gtest/gtest.h>

#include "plan/checks.h"
#include "plan/print.h"
#include "plan/verify.h"
#include "tests/harness/results.h"
#include "tests/plan/families.h"

namespace ccom {
namespace {

const Collective kRingCollectives[] = {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather};

Plan ring_plan(Collective collective, Rank rank, int nranks) {
  return staged_plan({collective, rank, nranks, -1, false}, flat_shape(Pattern::Ring, nranks), "ring");
}

// The same change on every rank.
template <typename Change>
bool is_rejected(Collective collective, Change change) {
  constexpr int kRanks = 6;
  return !verify(plans_of(kRanks, [&](Rank r) {
    Plan plan = ring_plan(collective, r, kRanks);
    change(plan);
    return plan;
  }));
}

TEST(WrongOnEveryRank, IsRejected) {
  const auto drop = [](Plan& p, size_t s) { p.steps.erase(p.steps.begin() + static_cast<std::ptrdiff_t>(s)); };
  for (const Collective collective : kRingCollectives) {
    const std::vector<Step> steps = ring_plan(collective, 0, 6).steps;
    for (size_t s = 0; s < steps.size(); ++s) {
      EXPECT_TRUE(is_rejected(collective, [&](Plan& p) { drop(p, s); })) << "dropped " << to_text(steps[s]);
      if (steps[s].is_transfer()) {
        EXPECT_TRUE(is_rejected(collective, [&](Plan& p) { p.steps[s].peer = (p.rank + 3) % 6; }))
            << "re-aimed " << to_text(steps[s]);
      }
      if (steps[s].kind != StepKind::Send) {
        EXPECT_TRUE(is_rejected(collective, [&](Plan& p) { p.steps[s].completes = !p.steps[s].completes; }))
            << "otherwise marked " << to_text(steps[s]);
      }
      if (steps[s].kind == StepKind::Send && steps[s].source_buffer == Buffer::Output) {
        EXPECT_TRUE(is_rejected(
            collective,
            [&](Plan& p) { p.steps[s].source = p.steps[s].block = (p.steps[s].block + 1) % p.output_blocks(); }))
            << "another block than " << to_text(steps[s]);
      }
    }
  }
}

TEST(WrongOnEveryRank, ASumThatLandsInAnotherBlocksPlaceIsSeen) {
  // All ranks agree on every word of it, and every output holds a complete sum: of the next block.
  EXPECT_TRUE(is_rejected(Collective::AllReduce, [](Plan& p) {
    const uint32_t all = p.input_blocks();
    p.scratch_slots = all;
    for (uint32_t b = 0; b < all; ++b) {
      for (const bool out : {false, true}) {
        const uint32_t from = (b + static_cast<uint32_t>(p.rank)) % all;
        p.steps.push_back({.kind = StepKind::Copy,
                           .source_buffer = out ? Buffer::Scratch : Buffer::Output,
                           .target_buffer = out ? Buffer::Output : Buffer::Scratch,
                           .source = out ? b : (from + 1) % all,
                           .target = out ? from : b,
                           .count = 1,
                           .block = out ? from : (from + 1) % all});
      }
    }
  }));
}

TEST(FollowingSomeBlocks, SeesWhatIsWrongInEveryBlockAndWhatHasNothingToDoWithData) {
  const std::vector<Plan> plans = plans_of(8, [](Rank r) { return ring_plan(Collective::AllReduce, r, 8); });
  ASSERT_TRUE(verify(plans, {.seed = 1, .blocks = 1}));
  EXPECT_EQ(verify(plans, {.seed = 1, .blocks = 3})->followed, 3U);
  EXPECT_EQ(verify(plans, {.seed = 1, .blocks = 99})->followed, 8U);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    std::vector<Plan> bad = plans;
    for (Step& step : bad[3].steps) step.completes = false;  // one block of eight
    for (Plan& plan : bad) {
      for (Step& step : plan.steps) {
        if (step.kind == StepKind::ReceiveReduce && step.completes) step.completes = plan.rank == 0;
      }
    }
    int seen = 0;
    for (uint64_t s = 1; s <= 8; ++s) seen += verify(bad, {.seed = seed * 8 + s, .blocks = 2}) ? 0 : 1;
    EXPECT_GT(seen, 6) << "seven blocks of eight are wrong";
    bad = plans;
    bad[seed - 1].steps.pop_back();
    EXPECT_FALSE(verify(bad, {.seed = seed, .blocks = 1})) << "a message that nobody receives";
  }
}

TEST(Verifier, RejectsABlockThatIsMovedWithTheLengthOfAnother) {
  Plan plan;
  plan.collective = Collective::Broadcast;
  plan.root = 0;
  plan.blocks_per_unit = 2;
  plan.input_units = plan.output_units = 1;
  plan.scratch_slots = 2;
  plan.steps = {copy_of(Buffer::Input, 0, Buffer::Scratch, 0, 0), copy_of(Buffer::Scratch, 0, Buffer::Scratch, 1, 0),
                copy_of(Buffer::Scratch, 1, Buffer::Output, 0, 0), copy_of(Buffer::Input, 1, Buffer::Output, 1, 1)};
  ASSERT_TRUE(verify({&plan, 1}));
  plan.steps[1].block = 1;  // the last block of a vector may be shorter
  const Status failure = error_of(verify({&plan, 1}));
  EXPECT_NE(failure.message().find("of another length"), std::string::npos) << failure.message();
}

// (a + b) + c on every rank, but rank 2 rounds in between.
TEST(Verifier, RejectsSumsThatAreRoundedOnOneRankMoreOftenThanOnOthers) {
  std::vector<Plan> plans = plans_of(3, [](Rank r) {
    return staged_plan({Collective::AllReduce, r, 3}, core_shape(Pattern::OneShot, 3), "one_shot");
  });
  ASSERT_TRUE(verify(plans));
  Plan& plan = plans[2];
  ASSERT_EQ(plan.steps.back().kind, StepKind::Reduce);
  ASSERT_EQ(plan.steps.back().inputs, 3);
  Step first = plan.steps.back();
  first.inputs = 2;
  first.completes = false;
  first.target_buffer = Buffer::Scratch;
  first.target = first.source + 1;
  Step second = plan.steps.back();
  second.inputs = 2;
  ++second.source;
  plan.steps.back() = first;
  plan.steps.push_back(second);
  const Status failure = error_of(verify(plans));
  EXPECT_NE(failure.message().find("another expression"), std::string::npos) << failure.message();
}

TEST(Verifier, RejectsCompletionMarksOnStepsThatCombineNothing) {
  const std::vector<Plan> plans = plans_of(3, [](Rank r) { return ring_plan(Collective::AllGather, r, 3); });
  for (size_t s = 0; s < plans[1].steps.size(); ++s) {
    std::vector<Plan> bad = plans;
    bad[1].steps[s].completes = true;
    EXPECT_FALSE(verify(bad)) << to_text(bad[1].steps[s]);
  }
}

TEST(Checks, FindRacesWithoutTrustingTheDerivation) {
  const Plan plan = ring_plan(Collective::AllReduce, 1, 5);
  const Dependencies good = derive_dependencies(plan);
  ASSERT_TRUE(check_order(plan, good).is_ok());
  for (size_t edge = 0; edge < good.successors.size(); ++edge) {
    Dependencies bad = good;  // one dependency less, counted as such
    --bad.waits_for[bad.successors[edge]];
    bad.successors.erase(bad.successors.begin() + static_cast<std::ptrdiff_t>(edge));
    for (uint32_t& first : bad.first_successor) first -= first > edge ? 1 : 0;
    EXPECT_NE(check_order(plan, bad).message().find("races"), std::string::npos) << "without edge " << edge;
    bad = good;
    ++bad.waits_for[bad.successors[edge]];
    EXPECT_FALSE(check_order(plan, bad).is_ok()) << "waits for what never comes";
  }
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    if (good.next_on_channel[s] == Dependencies::kNone) continue;
    Dependencies bad = good;
    bad.next_on_channel[s] = Dependencies::kNone;
    EXPECT_FALSE(check_order(plan, bad).is_ok()) << "a channel's order";
  }
}

TEST(Checks, AcceptAnOrderByWayOfOtherSteps) {
  // Three writes of a slot: the third may wait for the second only, or for both.
  Plan plan;
  plan.input_units = plan.output_units = 1;
  plan.scratch_slots = 2;
  plan.steps = {copy_of(Buffer::Input, 0, Buffer::Scratch, 0, 0), copy_of(Buffer::Scratch, 0, Buffer::Scratch, 1, 0),
                copy_of(Buffer::Scratch, 1, Buffer::Output, 0, 0), copy_of(Buffer::Input, 0, Buffer::Scratch, 0, 0)};
  Dependencies chain = derive_dependencies(plan);
  EXPECT_EQ(chain.waits_for, (std::vector<uint32_t>{0, 1, 1, 1}));
  chain.waits_for = {0, 1, 1, 1};
  chain.first_successor = {0, 1, 2, 3, 3};
  chain.successors = {1, 2, 3};  // step 3 after 2, which is after 1
  EXPECT_TRUE(check_order(plan, chain).is_ok()) << check_order(plan, chain).message();
  chain.successors = {1, 3, 3};
  chain.waits_for = {0, 1, 0, 2};
  EXPECT_FALSE(check_order(plan, chain).is_ok()) << "step 2 reads what step 1 writes";
}

}  // namespace
}  // namespace ccom
