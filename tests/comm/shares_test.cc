// SPDX-License-Identifier: Apache-2.0
//
// Ranks' words add up to nothing where all pairs agree, whatever the counts are, and not where any differ; and the
// difference is named as the C API's arguments.
#include "comm/shares.h"

#include <gtest/gtest.h>

#include <random>

namespace ccom {
namespace {

// Of n ranks that agree: counts[from * n + to].
std::vector<Shares> agreeing(size_t n, const std::vector<size_t>& counts) {
  std::vector<Shares> all(n);
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      all[from].sent.push_back(counts[from * n + to]);
      all[from].received.push_back(counts[to * n + from]);
    }
  }
  return all;
}

uint64_t sum_of(const std::vector<Shares>& all) {
  uint64_t sum = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) sum += claim_of(all[rank], static_cast<Rank>(rank));
  return sum;
}

std::vector<uint64_t> claims_of(const std::vector<Shares>& all) {
  std::vector<uint64_t> claims;
  for (const Shares& shares : all) {
    claims.insert(claims.end(), shares.sent.begin(), shares.sent.end());
    claims.insert(claims.end(), shares.received.begin(), shares.received.end());
  }
  return claims;
}

class RandomShares : public testing::TestWithParam<int> {
 protected:
  std::mt19937_64 random{static_cast<uint64_t>(GetParam())};
  const size_t n = 1 + random() % 9;
  std::vector<size_t> counts() {
    std::vector<size_t> all(n * n);
    for (size_t& count : all) count = random() % 3 == 0 ? 0 : random() >> (random() % 60 + 4);
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomShares, testing::Range(0, 200));

TEST_P(RandomShares, AddUpToNothingWhereAllAgree) {
  const std::vector<Shares> all = agreeing(n, counts());
  EXPECT_EQ(sum_of(all), 0U);
  EXPECT_EQ(first_difference(claims_of(all), static_cast<int>(n)), std::nullopt);
}

TEST_P(RandomShares, DoNotWhereSomeDifferAndTheFirstIsFound) {
  std::vector<Shares> all = agreeing(n, counts());
  Difference first{static_cast<Rank>(n), 0};
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t rank = random() % n, other = random() % n;
    const bool sends = random() % 2 == 0;
    size_t& count = (sends ? all[rank].sent : all[rank].received)[other];
    count += size_t{1} << random() % 50;
    const auto from = static_cast<Rank>(sends ? rank : other), to = static_cast<Rank>(sends ? other : rank);
    if (std::pair(from, to) <= std::pair(first.from, first.to)) first = {from, to};
  }
  first.sent = all[static_cast<size_t>(first.from)].sent[static_cast<size_t>(first.to)];
  first.received = all[static_cast<size_t>(first.to)].received[static_cast<size_t>(first.from)];
  if (first.sent == first.received) GTEST_SKIP() << "both ends were changed alike";
  EXPECT_NE(sum_of(all), 0U);
  EXPECT_EQ(first_difference(claims_of(all), static_cast<int>(n)), first);
}

TEST(DifferentCounts, AreNamedAsTheArgumentsOfTheCApi) {
  const Difference difference{3, 1, 5, 7};
  const auto text = [&](Collective collective) {
    const Status status = different_counts(collective, "x (call 2)", difference);
    EXPECT_EQ(status.code(), Code::Mismatch);
    EXPECT_EQ(status.peers(), (std::vector<int>{1, 3}));
    return status.message();
  };
  const std::string begin = "ranks gave different counts to x (call 2): ";
  EXPECT_EQ(text(Collective::AllGather), begin + "sendcount of rank 3 is 5, entry 3 of recvcounts of rank 1 is 7");
  EXPECT_EQ(text(Collective::Gather), begin + "sendcount of rank 3 is 5, entry 3 of recvcounts of rank 1 is 7");
  EXPECT_EQ(text(Collective::ReduceScatter),
            begin + "entry 1 of recvcounts of rank 3 is 5, entry 1 of recvcounts of rank 1 is 7");
  EXPECT_EQ(text(Collective::Scatter), begin + "entry 1 of sendcounts of rank 3 is 5, recvcount of rank 1 is 7");
  EXPECT_EQ(text(Collective::AllToAll),
            begin + "entry 1 of sendcounts of rank 3 is 5, entry 3 of recvcounts of rank 1 is 7");
}

}  // namespace
}  // namespace ccom
