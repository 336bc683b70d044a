// SPDX-License-Identifier: Apache-2.0
//
// Bine: trees for every number of ranks and every root, which for powers of two are those of numbers to the base -2;
// butterflies and the alltoall for every power of two; every plan proved; distances against those of binomial trees;
// and the closed form of the rounds of every flat pattern against the plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "algorithms/cost.h"
#include "algorithms/level_rounds.h"
#include "plan/lint.h"
#include "tests/algorithms/prove.h"
#include "tests/plan/fabrics.h"
#include "tests/plan/families.h"

namespace ccom {
namespace {

std::vector<Rank> in_row(int n) {
  std::vector<Rank> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

int way_round(int n, Rank a, Rank b) { return std::min((a - b + n) % n, (b - a + n) % n); }

// ---- Trees ----------------------------------------------------------------------------------------------------------

// The digits of a number to the base -2, lowest first.
std::vector<int> digits_of(int number, int count) {
  std::vector<int> digits;
  for (int i = 0; i < count; ++i) {
    digits.push_back(number & 1);
    number = (number - digits.back()) / -2;
  }
  EXPECT_EQ(number, 0);
  return digits;
}

int number_of(const std::vector<int>& digits) {
  int number = 0, weight = 1;
  for (const int digit : digits) {
    number += digit * weight;
    weight *= -2;
  }
  return number;
}

TEST(BineTree, OfPowersOfTwoTurnsOverTheRunOfEqualLowDigits) {
  for (int log = 1; log <= 9; ++log) {
    const int n = 1 << log;
    const Tree tree = bine_tree(in_row(n), 0);
    std::vector<int> digits(static_cast<size_t>(log));
    for (int pattern = 0; pattern < n; ++pattern) {
      for (int i = 0; i < log; ++i) digits[static_cast<size_t>(i)] = pattern >> i & 1;
      const int number = number_of(digits);
      EXPECT_EQ(digits_of(number, log), digits);
      const auto rank = static_cast<size_t>((number + n) % n);
      if (number == 0) {
        EXPECT_EQ(tree.parent[rank], -1);
        continue;
      }
      std::vector<int> above = digits;
      for (size_t i = 0; i < above.size() && digits[i] == digits[0]; ++i) above[i] = 1 - digits[i];
      EXPECT_EQ(tree.parent[rank], (number_of(above) + n) % n) << "rank " << rank << " of " << n;
    }
  }
}

int depth_of(const Tree& tree, Rank rank) {
  int depth = 0;
  for (Rank at = rank; tree.parent[static_cast<size_t>(at)] >= 0; at = tree.parent[static_cast<size_t>(at)]) ++depth;
  return depth;
}

TEST(BineTree, IsAsDeepAsABinomialOneAndItsSubtreesAreRunsOfTheRing) {
  for (int n = 1; n <= 200; ++n) {
    const Rank root = 7 % n;
    const Tree tree = bine_tree(in_row(n), root);
    std::vector<std::vector<Rank>> below(static_cast<size_t>(n));
    for (Rank rank = 0; rank < n; ++rank) {
      EXPECT_LE(depth_of(tree, rank), std::bit_width(static_cast<unsigned>(n - 1)));
      for (Rank at = rank; at >= 0; at = tree.parent[static_cast<size_t>(at)])
        below[static_cast<size_t>(at)].push_back(rank);
    }
    for (const std::vector<Rank>& subtree : below) {
      int ends = 0;
      for (const Rank rank : subtree) ends += std::ranges::binary_search(subtree, (rank + 1) % n) ? 0 : 1;
      EXPECT_LE(ends, 1) << n << " ranks";
    }
  }
}

// The k-th furthest children of a rank are 2^j away in a binomial tree, and about two thirds of that here.
TEST(BineTree, GoesTwoThirdsAsFarAsABinomialTree) {
  for (int n = 16; n <= 1024; n *= 2) {
    const Tree near = bine_tree(in_row(n), 0), far = knomial_tree(n, 0, 2);
    const auto length = [&](const Tree& tree) {
      double sum = 0;
      for (Rank rank = 1; rank < n; ++rank) sum += way_round(n, rank, tree.parent[static_cast<size_t>(rank)]);
      return sum;
    };
    EXPECT_LT(length(near), 0.72 * length(far)) << n;
    EXPECT_GT(length(near), 0.64 * length(far)) << n;
  }
}

TEST(BineTree, IsProvedForEveryCollectiveRootAndNumberOfRanks) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    std::vector<Rank> order = in_row(n);
    if (n % 2 == 0) std::ranges::reverse(order.begin() + n / 4, order.end());
    for (const Rank root : {0, n / 2, n - 1}) {
      Tree tree = bine_tree(order, root);
      for (const int chunks : {1, 3}) {
        tree.chunks = chunks;
        const auto make = [&](const Call& call) { return tree_plan(call, tree, "bine"); };
        for (const bool in_place : {false, true}) {
          for (const Collective collective :
               {Collective::Broadcast, Collective::Reduce, Collective::Gather, Collective::Scatter}) {
            prove(collective, n, root, in_place, make, 1);
          }
          if (root == 0) prove(Collective::AllReduce, n, -1, in_place, make, 1);
        }
      }
    }
  }
}

// ---- Butterflies ----------------------------------------------------------------------------------------------------

TEST(Bine, HalvesAreProvedForEveryPowerOfTwo) {
  for (int n = 1; n <= 64; n *= 2) {
    const Staged shape = flat_shape(Pattern::Bine, n);
    ASSERT_TRUE(divides_evenly(shape, n));
    for (const Collective collective :
         {Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather, Collective::Barrier}) {
      for (const bool in_place : {false, true}) {
        const VerifyReport report = prove(collective, n, in_place, shape);
        if (collective == Collective::AllReduce && n > 1) {
          EXPECT_EQ(report.max_roundings, level_roundings(shape.levels[0]));
        }
      }
    }
  }
}

TEST(Bine, LatencyFormIsProvedForAnyNumberOfRanks) {
  for (int n = 1; n <= kMaxRanks; ++n) {
    const Staged shape = core_shape(Pattern::BineLatency, n);
    for (const bool in_place : {false, true}) {
      const VerifyReport report = prove(Collective::AllReduce, n, in_place, shape);
      if (n > 1) {
        EXPECT_EQ(report.max_roundings, level_roundings(shape.core[0]));
      }
    }
  }
}

TEST(Bine, IsProvedBelowAndAboveOtherLevels) {
  const Staged across = host_shape(8, 3, Pattern::Bine);
  Staged inside = host_shape(3, 8, Pattern::Circulant);
  inside.levels[0].pattern = Pattern::Bine;
  for (Staged shape : {across, inside}) {
    for (shape.windows = 1; shape.windows <= 2; ++shape.windows) {
      for (const Collective collective : kWholeAndHalves) {
        prove(collective, 24, true, shape);
      }
    }
  }
}

// An allreduce sends one message a round, of what its cost says.
TEST(Bine, AllreduceTakesOneMessageInEachRound) {
  for (const int n : {2, 4, 16, 64}) {
    const Staged shape = flat_shape(Pattern::Bine, n);
    const auto log = static_cast<size_t>(std::countr_zero(static_cast<unsigned>(n)));
    const auto plan_of = [&](Rank r) { return staged_plan({Collective::AllReduce, r, n}, shape, "bine"); };
    const Result<LintReport> report = lint(plans_of(n, plan_of), mesh_fabric(n));
    ASSERT_TRUE(report);
    EXPECT_EQ(report->rounds.size(), 2 * log);
    EXPECT_EQ(report->messages, 2 * log * static_cast<size_t>(n));
    const Cost half = bine_reduce_scatter_cost(n, 1);
    EXPECT_EQ(half.posts, static_cast<double>(log));
    double loads = 0;
    for (const double load : report->link_loads) loads += load;
    EXPECT_DOUBLE_EQ(loads / n, 2 * half.bytes);
  }
}

// ---- AllToAll -------------------------------------------------------------------------------------------------------

TEST(Bine, AllToAllIsProvedAndSendsHalfOfAllBlocksInEachRound) {
  for (int n = 1; n <= 64; n *= 2) {
    for (const bool in_place : {false, true}) prove(Collective::AllToAll, n, -1, in_place, bine_alltoall_plan);
    for (Rank rank = 0; rank < n; ++rank) {
      int sends = 0;
      for (const Step& step : bine_alltoall_plan({Collective::AllToAll, rank, n}).steps) {
        if (step.kind != StepKind::Send) continue;
        ++sends;
        EXPECT_EQ(step.count, static_cast<uint32_t>(n / 2));
      }
      EXPECT_EQ(sends, std::countr_zero(static_cast<unsigned>(n)));
    }
  }
}

// ---- Rounds as closed forms -----------------------------------------------------------------------------------------

// What each pair of ranks exchanges.
using Pairs = std::map<std::pair<Rank, Rank>, double>;

Pairs pairs_of(const std::vector<LevelRound>& rounds, int n) {
  Pairs pairs;
  for (const LevelRound& round : rounds) {
    for (Rank from = 0; from < n; ++from) {
      const auto to = static_cast<Rank>(round.to(static_cast<uint32_t>(from)));
      if (to != from) pairs[{from, to}] += round.bytes;
    }
  }
  return pairs;
}

Pairs pairs_of(const std::vector<Plan>& plans, double bytes) {
  Pairs pairs;
  for (const Plan& plan : plans) {
    for (const Step& step : plan.steps) {
      if (step.kind == StepKind::Send) pairs[{plan.rank, step.peer}] += step.count * bytes;
    }
  }
  return pairs;
}

void expect_equal(const Pairs& a, const Pairs& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (const auto& [pair, bytes] : a) EXPECT_NEAR(bytes, b.at(pair), 1e-9) << what;
}

TEST(LevelRounds, AreThoseOfThePlans) {
  for (int n = 2; n <= 24; ++n) {
    const auto size = static_cast<uint32_t>(n);
    for (const Pattern pattern : {Pattern::Ring, Pattern::Circulant, Pattern::Bine}) {
      if (pattern == Pattern::Bine && !std::has_single_bit(size)) continue;
      const Staged shape = flat_shape(pattern, n);
      const auto plan_of = [&](Rank r) { return staged_plan({Collective::ReduceScatter, r, n}, shape, ""); };
      expect_equal(pairs_of(level_rounds(shape.levels[0], size, 1), n), pairs_of(plans_of(n, plan_of), 1.0 / n),
                   "pattern " + std::to_string(static_cast<int>(pattern)) + ", " + std::to_string(n));
    }
    for (const Pattern pattern : {Pattern::RecursiveDoubling, Pattern::BineLatency}) {
      const Staged shape = core_shape(pattern, n);
      const auto plan_of = [&](Rank r) { return staged_plan({Collective::AllReduce, r, n}, shape, ""); };
      expect_equal(pairs_of(level_rounds(shape.core[0], size, 1), n), pairs_of(plans_of(n, plan_of), 1),
                   "core " + std::to_string(static_cast<int>(pattern)) + ", " + std::to_string(n));
    }
    const auto plans = [&](Plan (*make)(const Call&)) {
      return plans_of(n, [&](Rank r) { return make({Collective::AllToAll, r, n}); });
    };
    expect_equal(pairs_of(bruck_rounds(size, n), n), pairs_of(plans(bruck_alltoall_plan), 1), "bruck");
    if (!std::has_single_bit(size)) continue;
    expect_equal(pairs_of(bine_alltoall_rounds(size, n), n), pairs_of(plans(bine_alltoall_plan), 1), "bine");
  }
}

}  // namespace
}  // namespace ccom
