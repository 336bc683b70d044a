// SPDX-License-Identifier: Apache-2.0
//
// Percentiles, bandwidths and the busbw factors, against figures worked out by hand.
#include "bench/statistics.h"

#include <gtest/gtest.h>

#include <numeric>

namespace ccom::bench {
namespace {

TEST(Percentile, LiesBetweenNeighbours) {
  const std::vector<double> sorted = {1, 2, 3, 10};
  EXPECT_DOUBLE_EQ(percentile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(sorted, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile(sorted, 1), 10);
  EXPECT_DOUBLE_EQ(percentile({7}, 0.95), 7);
  EXPECT_DOUBLE_EQ(percentile({}, 0.5), 0);
}

TEST(Summarise, SortsAndGivesMicroseconds) {
  const Times times = summarise({3e-6, 1e-6, 2e-6});
  EXPECT_EQ(times.samples, 3u);
  EXPECT_DOUBLE_EQ(times.min, 1);
  EXPECT_DOUBLE_EQ(times.p50, 2);
  EXPECT_DOUBLE_EQ(times.max, 3);
}

TEST(Summarise, GivesTheP99OnlyFromAHundredSamplesOn) {
  std::vector<double> seconds(99);
  std::iota(seconds.begin(), seconds.end(), 1.0);
  EXPECT_FALSE(summarise(seconds).p99.has_value());
  seconds.push_back(100);
  seconds.push_back(101);
  EXPECT_DOUBLE_EQ(summarise(seconds).p99.value(), 100e6);
}

TEST(HiddenShare, IsWhatIsSavedOfWhatCouldBe) {
  EXPECT_DOUBLE_EQ(hidden_share(10, 10, 10), 1);
  EXPECT_DOUBLE_EQ(hidden_share(10, 10, 15), 0.5);
  EXPECT_DOUBLE_EQ(hidden_share(10, 10, 20), 0);
  EXPECT_DOUBLE_EQ(hidden_share(10, 10, 25), -0.5);
  EXPECT_DOUBLE_EQ(hidden_share(4, 10, 12), 0.5) << "at most the shorter one can be hidden";
  EXPECT_DOUBLE_EQ(hidden_share(10, 4, 12), 0.5);
  EXPECT_DOUBLE_EQ(hidden_share(10, 10, 9), 1) << "noise";
}

TEST(BusbwFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(busbw_factor(Collective::AllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(busbw_factor(Collective::AllReduce, 1), 0);
  for (Collective collective : {Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll,
                                Collective::Gather, Collective::Scatter}) {
    EXPECT_DOUBLE_EQ(busbw_factor(collective, 8), 0.875) << name_of(collective);
  }
  for (Collective collective : {Collective::Broadcast, Collective::Reduce, Collective::SendRecv}) {
    EXPECT_DOUBLE_EQ(busbw_factor(collective, 8), 1) << name_of(collective);
  }
}

TEST(Algbw, CountsABillionBytesAsAGigabyte) {
  EXPECT_DOUBLE_EQ(algbw(1'000'000'000, 1e6), 1);
  EXPECT_DOUBLE_EQ(algbw(size_t{8} << 30, 1e6), 8.589934592);
  EXPECT_DOUBLE_EQ(algbw(8, 0), 0);
}

}  // namespace
}  // namespace ccom::bench
