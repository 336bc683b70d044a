// SPDX-License-Identifier: Apache-2.0
//
// The in-process rendezvous has the same rules and error texts as the one over gRPC.
#include "bootstrap/local_rendezvous.h"

#include "test_rendezvous.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LocalRendezvous, GathersManyRounds) {
  constexpr int kRanks = 7;
  const auto hub = LocalHub::create();
  run_ranks(kRanks, [&](Rank rank) {
    const auto rendezvous = value_of(hub->join(kRanks, rank));
    for (int round = 0; round < 50; ++round) {
      const auto parts = value_of(rendezvous->all_gather("round", std::to_string(round * 100 + rank), soon()));
      for (int of = 0; of < kRanks; ++of) EXPECT_EQ(parts[static_cast<size_t>(of)], std::to_string(round * 100 + of));
    }
  });
}

TEST(LocalRendezvous, NamesMissingRanks) {
  const auto hub = LocalHub::create();
  run_ranks(2, [&](Rank rank) {
    const auto rendezvous = value_of(hub->join(5, rank));
    const Status failure = error_of(rendezvous->all_gather("addresses", "x", Deadline::after_ms(100)));
    EXPECT_EQ(failure.code(), Code::Timeout);
    EXPECT_THAT(failure.message(), AllOf(HasSubstr("ranks 2-4 of 5"), HasSubstr("none of them joined")));
    EXPECT_THAT(failure.peers(), ElementsAre(2, 3, 4));
  });
}

TEST(LocalRendezvous, NamesARankThatLeft) {
  const auto hub = LocalHub::create();
  const auto stays = value_of(hub->join(2, 0));
  { const auto leaves = hub->join(2, 1); }
  const Status failure = error_of(stays->all_gather("addresses", "x", soon()));
  EXPECT_EQ(failure.code(), Code::RemoteError);
  EXPECT_THAT(failure.peers(), ElementsAre(1));
}

TEST(LocalRendezvous, RefusesContradictions) {
  EXPECT_THAT(message_of(LocalHub::create()->join(2, 2)), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(message_of(LocalHub::create()->join(0, 0)), HasSubstr("rank 0 of 0"));
  {
    const auto hub = LocalHub::create();
    const auto first = hub->join(4, 0);
    EXPECT_THAT(message_of(hub->join(5, 1)), AllOf(HasSubstr("5 ranks"), HasSubstr("with 4")));
  }
  const auto hub = LocalHub::create();
  const auto first = hub->join(4, 0);
  EXPECT_THAT(message_of(hub->join(4, 0)), HasSubstr("rank 0 joined twice"));
}

TEST(LocalRendezvous, RefusesRanksAtDifferentExchanges) {
  const auto hub = LocalHub::create();
  run_ranks(3, [&](Rank rank) {
    const auto rendezvous = hub->join(3, rank);
    if (!rendezvous) return;  // the others failed before this one came
    const auto parts = (*rendezvous)->all_gather(rank == 1 ? "topology" : "addresses", "x", soon());
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code(), Code::ConfigError);
    EXPECT_THAT(parts.error().message(), AllOf(HasSubstr("(addresses)"), HasSubstr("(topology)")));
  });
}

}  // namespace
}  // namespace ccom
