// SPDX-License-Identifier: Apache-2.0
//
// Plans of 4,096 ranks are proved: matching, progress and races for every step, the data by fingerprints of some
// blocks; the flat ring, which would have 67 million steps, of 1,024 ranks. (Fewer ranks where a sanitizer slows it
// down.)
#include <gtest/gtest.h>

#include <bit>

#include "plan/lint.h"
#include "plan/print.h"
#include "plan/verify.h"
#include "tests/harness/results.h"
#include "tests/plan/fabrics.h"
#include "tests/plan/families.h"

namespace ccom {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSide = 16;
#else
constexpr int kSide = 64;
#endif
constexpr int kRanks = kSide * kSide;
constexpr uint32_t kFollowed = 16;

VerifyReport prove(const Staged& shape, int nranks = kRanks) {
  const StagedPlans maker(shape, nranks, Collective::AllReduce);
  const std::vector<Plan> plans = plans_of(nranks, [&](Rank r) {
    return maker.make({Collective::AllReduce, r, nranks, -1, false}, "scale");
  });
  return value_of(verify(plans, {.seed = 20261122, .blocks = kFollowed}));
}

TEST(Scale, CirculantIsProved) {
  const VerifyReport report = prove(flat_shape(Pattern::Circulant, kRanks));
  EXPECT_EQ(report.max_roundings, 2 * std::countr_zero(static_cast<unsigned>(kSide)));
  EXPECT_EQ(report.items, static_cast<uint64_t>(kRanks));
  EXPECT_EQ(report.followed, kFollowed);
}

TEST(Scale, RecursiveDoublingIsProved) {
  const VerifyReport report = prove(core_shape(Pattern::RecursiveDoubling, kRanks));
  EXPECT_EQ(report.followed, report.items) << "the vector is one block";
}

TEST(Scale, TorusBucketIsProved) {
  const VerifyReport report = prove(torus_shape(kSide, kSide));
  EXPECT_EQ(report.max_sent_blocks, static_cast<size_t>(2 * (kRanks - 1) * 4));
}

TEST(Scale, TorusBucketMeetsTheBoundWithAllLinksBusyInEveryRound) {
  const Staged shape = torus_shape(kSide, kSide);
  const StagedPlans maker(shape, kRanks, Collective::AllReduce);
  const std::vector<Plan> plans = plans_of(kRanks, [&](Rank r) {
    return maker.make({Collective::AllReduce, r, kRanks, -1, false}, "torus");
  });
  const auto report = value_of(lint(plans, torus_fabric(kSide, kSide)));
  EXPECT_EQ(report.rounds.size(), static_cast<size_t>(4 * (kSide - 1)));
  for (const LintRound& round : report.rounds) ASSERT_EQ(round.busy_links, static_cast<uint32_t>(4 * kRanks));
  EXPECT_EQ(report.hops, report.messages);
  EXPECT_EQ(check_bound(report, 2.0 * (kRanks - 1) / kRanks / 4, 1.0).message(), "");
}

TEST(Scale, SwingIsProved) {
  Staged shape = torus_shape(kSide, kSide);
  shape.levels[0].pattern = Pattern::Swing;
  prove(shape);
}

TEST(Scale, MixedRadixIsProved) {
  const Radix shape = radix_shape(kRanks / 16, 16);
  const auto report = verify(plans_of(kRanks, [&](Rank r) {
    return mixed_radix_plan({Collective::AllReduce, r, kRanks}, shape, "radix");
  }));
  EXPECT_TRUE(report) << report.error().message();
}

TEST(Scale, HierarchicalIsProved) { prove(host_shape(kRanks / 16, 16, Pattern::Circulant)); }

TEST(Scale, TorusInsideHostsIsProved) { prove(host_shape(kRanks / 16, 16, Pattern::Circulant, 4)); }

TEST(Scale, FlatRingOfAQuarterOfTheRanksIsProved) {
  constexpr int kFewer = kRanks / 4;
  const VerifyReport report = prove(flat_shape(Pattern::Ring, kFewer), kFewer);
  EXPECT_EQ(report.steps, uint64_t{4} * kFewer * (kFewer - 1));
  EXPECT_EQ(report.max_roundings, kFewer - 1);
}

}  // namespace
}  // namespace ccom
