// SPDX-License-Identifier: Apache-2.0
//
// A rank that does not get the last answer of a start, which the others have got: their calls end with the error that
// it got instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bootstrap/local_rendezvous.h"
#include "comm/communicator.h"
#include "setup/comm_setup.h"
#include "tests/harness/threads.h"
#include "tests/setup/made_rendezvous.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 3;
constexpr Rank kWithoutAnswer = 0, kSilent = 1;

class LostAnswer : public testing::TestWithParam<bool> {};

TEST_P(LostAnswer, U4OfAStartIsTheErrorOfTheOthersCalls) {
  const std::shared_ptr<LocalHub> hub = LocalHub::create();
  const Secret secret = Secret::random();
  run_ranks(kRanks, [&](int rank) {
    const std::unique_ptr<Rendezvous> joined = *hub->join(kRanks, rank);
    MadeRendezvous rendezvous(
        [&](std::string_view phase, std::string mine, Deadline until) {
          MadeRendezvous::Parts all = joined->all_gather(phase, std::move(mine), until);
          if (all && rank == kWithoutAnswer && phase == CommSetup::kLastExchange)
            all = error(ErrorKey::RankSilent, "rank %d is silent", kSilent).with_peers({kSilent});
          return all;
        },
        joined.get());
    CommConfig config = *CommConfig::from_environment();
    if (GetParam()) config.host_id = "host" + std::to_string(rank);
    const auto made =
        Communicator::create({rank, kRanks, 1, secret}, config, rendezvous, Deadline::after_ms(config.init_timeout_ms));
    ASSERT_EQ(static_cast<bool>(made), rank != kWithoutAnswer);
    const Status status = made ? (*made)->run({.collective = Collective::Barrier}) : made.error();
    EXPECT_EQ(status.key(), ErrorKey::RankSilent) << status.text();
    EXPECT_THAT(status.peers(), ElementsAre(kSilent)) << status.text();
    EXPECT_THAT(status.message(), HasSubstr("rank 1 is silent"));
  });
}

INSTANTIATE_TEST_SUITE_P(On, LostAnswer, testing::Bool(),
                         [](const auto& on) { return on.param ? "three_hosts" : "one_host"; });

}  // namespace
}  // namespace ccom
