// SPDX-License-Identifier: Apache-2.0
//
// Makes the plans of all ranks of a call and lets the verifier prove them, from several seeds of event order.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "algorithms/collectives.h"
#include "plan/verify.h"

namespace ccom {

constexpr int kMaxRanks = 33;

inline constexpr std::array kHalves{Collective::ReduceScatter, Collective::AllGather};
inline constexpr std::array kWholeAndHalves{Collective::AllReduce, Collective::ReduceScatter, Collective::AllGather};

using Make = std::function<Plan(const Call&)>;

inline VerifyReport prove(Collective collective, int nranks, Rank root, bool in_place, const Make& make,
                          uint64_t seeds = 3) {
  std::vector<Plan> plans;
  for (Rank r = 0; r < nranks; ++r) {
    // Rooted gather and scatter alias on the root only.
    const bool here =
        in_place && (r == root || root < 0 || collective == Collective::Broadcast || collective == Collective::Reduce);
    plans.push_back(make({collective, r, nranks, root, here}));
  }
  VerifyReport last;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Result<VerifyReport> report = verify(plans, seed);
    EXPECT_TRUE(report) << report.error().message() << "\nseed " << seed << ", " << nranks << " ranks, in place "
                        << in_place << "\n";
    if (!report) return {};
    last = *report;
  }
  return last;
}

inline VerifyReport prove(Collective collective, int nranks, bool in_place, const Staged& shape, uint64_t seeds = 3) {
  const Make make = [&](const Call& call) { return staged_plan(call, shape, "test"); };
  return prove(collective, nranks, -1, in_place, make, seeds);
}

}  // namespace ccom
