// SPDX-License-Identifier: Apache-2.0
//
// Rounds of agreement of Monitors on emulated hosts, over real connections. Deaths: tests/processes/survivors_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/liveness/cluster.h"

namespace ccom::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ConsensusTerms terms_of(Rank rank, uint64_t call = 7) {
  ConsensusTerms terms{.call = call, .flags = ~(uint64_t{1} << rank), .payload = {}};
  terms.payload[3] = 100 + static_cast<uint64_t>(rank);
  return terms;
}

class Agree : public ::testing::TestWithParam<bool> {  // with TLS
 protected:
  explicit Agree(std::vector<int> layout = {2, 2}) : cluster_(std::move(layout), 2000, GetParam()) {
    EXPECT_TRUE(cluster_.connect().is_ok());
  }
  // The outcomes of these ranks, by rank.
  template <typename Fn>
  std::map<Rank, Result<Consensus>> all(const std::vector<Rank>& ranks, Fn fn) {
    std::map<Rank, Result<Consensus>> found;
    for (const Rank rank : ranks) found.emplace(rank, error(Code::InternalError, "not yet"));
    std::vector<std::jthread> threads;
    for (const Rank rank : ranks) threads.emplace_back([&, rank] { found.at(rank) = fn(rank); });
    threads.clear();
    return found;
  }
  Result<Consensus> agree(Rank rank, const std::vector<Rank>& excluded = {}, int64_t timeout_ms = 20000,
                          uint64_t call = 7) {
    return cluster_[rank].agree(terms_of(rank, call), excluded, Deadline::after_ms(timeout_ms));
  }

  Cluster cluster_;
};
INSTANTIATE_TEST_SUITE_P(Connections, Agree, ::testing::Bool(),
                         [](const auto& tls) { return tls.param ? std::string("Tls") : std::string("Plain"); });

TEST_P(Agree, GivesAllTheSameAgainAndAgain) {
  for (int round = 0; round < 5; ++round) {
    for (const auto& [rank, found] : all({0, 1, 2, 3}, [&](Rank r) { return agree(r); })) {
      ASSERT_TRUE(found) << found.error().message();
      EXPECT_THAT(found->in, ElementsAre(0, 1, 2, 3));
      EXPECT_THAT(found->out, IsEmpty());
      EXPECT_EQ(found->flags, ~uint64_t{15});
      EXPECT_EQ(found->payload[3], 100U);
    }
  }
}

TEST_P(Agree, LeavesOutWhoIsExcludedOrHasLeft) {
  cluster_.destroy(3);
  for (const auto& [rank, found] : all({1, 2}, [&](Rank r) { return agree(r, {0}); })) {
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_THAT(found->in, ElementsAre(1, 2));
    EXPECT_THAT(found->out, ElementsAre(0, 3));
    EXPECT_EQ(found->payload[3], 101U);
  }
  const auto late = agree(0);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().key(), ErrorKey::LeftOut);
}

TEST_P(Agree, TellsAllWhoHasNotCome) {
  const auto outcomes = all({0, 2, 3}, [&](Rank r) { return agree(r, {}, r == 2 ? 300 : 20000); });
  for (const auto& [rank, found] : outcomes) {
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().key(), ErrorKey::RankLate);
    EXPECT_THAT(found.error().message(), HasSubstr("rank 1 did not come"));
  }
  const auto late = agree(1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().key(), ErrorKey::RankLate);
  for (const auto& [rank, found] : all({0, 1, 2, 3}, [&](Rank r) { return agree(r); })) ASSERT_TRUE(found);
}

TEST_P(Agree, TellsAllWhoMakesAnotherCall) {
  for (const auto& [rank, found] : all({0, 1, 2, 3}, [&](Rank r) { return agree(r, {}, 20000, r == 2 ? 8 : 7); })) {
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code(), Code::Mismatch);
    EXPECT_THAT(found.error().message(), HasSubstr("rank 2 makes another call"));
  }
}

// The error reaches ranks before, while and after they come.
TEST_P(Agree, DoesSoAfterAnError) {
  for (const auto& [rank, found] : all({0, 1, 2, 3}, [&](Rank r) {
         if (r == 1) (void)cluster_[1].report(error(Code::Revoked, "rank 1 revoked the communicator"));
         return agree(r);
       })) {
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_THAT(found->in, ElementsAre(0, 1, 2, 3));
  }
}

}  // namespace
}  // namespace ccom::test
