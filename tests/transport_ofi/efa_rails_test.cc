// SPDX-License-Identifier: Apache-2.0
//
// Several rails on the emulated EFA: they share what is large, and one of them may die.
#include <gtest/gtest.h>

#include "tests/harness/results.h"
#include "tests/transport_ofi/efa/job.h"
#include "tests/transport_ofi/traffic.h"
#include "transports/ofi/addresses.h"

namespace ccom::ofi {
namespace {

// A rail for writes dies, of one rank or of two; what was written to it may have arrived or not.
void run_unplugged_seed(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed * 177);
  efa::Personality personality = efa::draw_personality(seed);
  personality.has_rma = true;
  efa::network().become(personality);
  JobOptions options = efa_job(3, 2, 3);
  options.flight_time = std::chrono::milliseconds(5);
  OfiJob job(options);
  ASSERT_TRUE(job.connect_all());
  Traffic traffic(job, 3, 2, random());
  traffic.post();
  for (uint64_t steps = random() % 100; steps > 0; --steps) job.step();
  const auto unplug = [&](Rank rank, size_t rail) {
    efa::network().unplug(split_addresses(job[rank].address())[1 + rail]);
  };
  unplug(0, random() % 3);
  if (random() % 2 == 0) unplug(1, 1);
  EXPECT_TRUE(traffic.run());
  for (Rank rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(job.report(rank).status.is_ok()) << job.report(rank).status.message();
  traffic.check(true);
  job.destroy_all();
  expect_no_violations();
}

TEST(OfiEfaRails, ARailThatDiesLosesAndRepeatsNothing) {
  const uint64_t first = test_seed(), count = count_seeds(30);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) run_unplugged_seed(seed);
}

TEST(OfiEfaRails, WithoutTheLastRailThereIsAnErrorThatNamesThePeer) {
  efa::network().become({});
  JobOptions options = efa_job(2, 1, 2);
  options.flight_time = std::chrono::milliseconds(5);
  OfiJob job(options);
  ASSERT_TRUE(job.connect_all());
  for (const size_t rail : {1, 2}) efa::network().unplug(split_addresses(job[0].address())[rail]);
  const auto sent = pattern(4 << 20, 1);
  ASSERT_TRUE(job.channel(0, 1).post_send({{}, sent, 1}).is_ok());
  ASSERT_TRUE(job.step_until([&job] { return !job.report(0).status.is_ok(); }));
  EXPECT_EQ(job.report(0).status.code(), Code::RemoteError) << job.report(0).status.message();
  EXPECT_EQ(job.report(0).status.peers(), std::vector<int>{1});
}

// What may have arrived is not asked for: the peer has left.
TEST(OfiEfaRails, WritesToARailThatDiedAreOverWhenThePeerLeaves) {
  efa::network().become({});
  JobOptions options = efa_job(2, 1, 2);
  options.flight_time = std::chrono::hours(1);
  OfiJob job(options);
  ASSERT_TRUE(job.connect_all());
  efa::network().unplug(split_addresses(job[0].address())[1]);
  const auto sent = pattern(1 << 20, 1);
  std::vector<std::byte> received(sent.size());
  ASSERT_TRUE(job.channel(1, 0).post_receive({{}, received.size(), received.data(), nullptr, 1}).is_ok());
  for (int i = 0; i < 50; ++i) job.step();  // so that the sender knows the target before it begins
  ASSERT_TRUE(job.channel(0, 1).post_send({{}, sent, 2}).is_ok());
  for (int i = 0; i < 3000; ++i) job.step();
  EXPECT_TRUE(job.report(0).completed.empty() && job.report(0).status.is_ok()) << job.report(0).status.message();
  job[1].stop();
  EXPECT_TRUE(job.step_until([&job] { return !job.report(0).completed.empty(); })) << job.report(0).status.message();
}

TEST(OfiEfaRails, ShareWhatIsLarge) {
  efa::network().become({});
  OfiJob job(efa_job(2, 1, 3));
  ASSERT_TRUE(job.connect_all());
  constexpr size_t kBytes = 12 << 20;
  ASSERT_TRUE(job.carry(0, 1, kBytes));
  for (const uint64_t bytes : job[0].written_bytes()) EXPECT_GT(bytes, kBytes / 6);
  expect_no_violations();
}

TEST(OfiEfaRails, SixteenRailsShareOneMessageAndSeventeenAreAnError) {
  efa::network().become({});
  OfiJob job(efa_job(2, 1, 16));
  ASSERT_TRUE(job.status().is_ok()) << job.status().message();
  ASSERT_TRUE(job.connect_all());
  Traffic traffic(job, 2, 1, 1);
  traffic.post();
  EXPECT_TRUE(traffic.run());
  traffic.check(true);
  constexpr size_t kBytes = 64 << 20;
  ASSERT_TRUE(job.carry(0, 1, kBytes));
  for (const uint64_t bytes : job[0].written_bytes()) EXPECT_GT(bytes, kBytes / 32);
  expect_no_violations();
  OfiConfig config = job.config(0);
  config.rails = some_rails(17);
  EXPECT_EQ(error_of(make_ofi_transport(config)).code(), Code::ConfigError);
}

}  // namespace
}  // namespace ccom::ofi
