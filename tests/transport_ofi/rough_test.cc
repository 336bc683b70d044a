// SPDX-License-Identifier: Apache-2.0
//
// The transport on a fabric that reorders, refuses and fails: nothing is assumed of order, flow control never runs out
// of buffers, and every failure names its peer. The whole conformance suite runs on such a fabric too
// (tests/conformance).
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <thread>

#include "tests/transport_ofi/ofi_job.h"
#include "tests/transport_ofi/rough_endpoint.h"
#include "tests/transport_ofi/traffic.h"

namespace ccom::ofi {
namespace {

Wrap rough(Roughness roughness) {
  return [roughness](Rank rank, std::unique_ptr<Endpoint> inner) {
    Roughness mine = roughness;
    mine.seed = roughness.seed * 100 + static_cast<uint64_t>(rank);
    return make_rough(std::move(inner), mine);
  };
}

// Messages of random sizes on every channel between all ranks.
void exchange(const Roughness& roughness, int ranks, int channels) {
  SCOPED_TRACE(testing::Message() << "seed " << roughness.seed);
  OfiJob job({.ranks = ranks, .channels = channels, .wrap = rough(roughness)});
  ASSERT_TRUE(job.connect_all());
  Traffic traffic(job, ranks, channels, roughness.seed,
                  {.least = 20, .most = 20, .large_bytes = 60'000, .small_bytes = 500});
  traffic.post();
  EXPECT_TRUE(traffic.run());
  for (Rank rank = 0; rank < ranks; ++rank)
    EXPECT_TRUE(job.report(rank).status.is_ok()) << job.report(rank).status.message();
  traffic.check(true);
}

TEST(OfiRough, AnyOrderOfArrivalGivesTheSameMessages) {
  for (uint64_t seed = 1; seed <= 8; ++seed) exchange({.seed = seed}, 3, 2);
}

TEST(OfiRough, OneCreditPerChannelIsEnough) {
  // Room for (1 + 5) buffers for each of 8 channels and 8 for each of 2 peers, and no more.
  exchange({.seed = 11, .limits = {.message_bytes = 1024, .sends = 64, .receives = 64}}, 3, 4);
}

TEST(OfiRough, QueuesTooShortForOneCreditAreRefusedAtConnect) {
  OfiJob job({.wrap = rough({.limits = {.message_bytes = 2048, .sends = 11, .receives = 11}})});
  for (const Status& status : job.connect(std::chrono::seconds(1))) EXPECT_EQ(status.code(), Code::NotSupported);
}

// Of rank 1, and what it got.
std::pair<OfiJob::Report, std::vector<std::byte>> receive_damaged(ConstBytes sent, bool checksum) {
  const auto damage = std::make_shared<std::atomic<bool>>(false);
  OfiJob job({.checksum = checksum, .wrap = rough({.damage = damage})});
  EXPECT_TRUE(job.connect_all());
  *damage = true;
  std::vector<std::byte> received(sent.size());
  OfiJob::Report& report = job.report(1);
  EXPECT_TRUE(job.channel(1, 0).post_receive({{}, received.size(), received.data(), nullptr, 1}).is_ok());
  EXPECT_TRUE(job.channel(0, 1).post_send({{}, sent, 1}).is_ok());
  EXPECT_TRUE(job.step_until([&report] { return !report.status.is_ok() || !report.completed.empty(); }));
  return {report, received};
}

TEST(OfiRough, ADamagedMessageIsATransportErrorAndNotDelivered) {
  const auto [report, received] = receive_damaged(pattern(64, 1), true);
  EXPECT_TRUE(report.completed.empty());
  EXPECT_EQ(report.status.code(), Code::TransportError);
  EXPECT_EQ(report.status.peers(), std::vector<int>{0});
  EXPECT_EQ(received, std::vector<std::byte>(64));
}

TEST(OfiRough, WithoutChecksumsDamageGoesThrough) {
  const auto sent = pattern(64, 1);
  const auto [report, received] = receive_damaged(sent, false);
  EXPECT_FALSE(report.completed.empty());
  EXPECT_NE(received, sent);
}

TEST(OfiRough, AFailedSendNamesThePeerAndTellsUnreachableFromBroken) {
  const std::vector<std::pair<int, Code>> cases = {{FI_EHOSTUNREACH, Code::RemoteError},
                                                   {FI_ECONNABORTED, Code::RemoteError},
                                                   {FI_ENOTCONN, Code::RemoteError},
                                                   {FI_EINVAL, Code::TransportError},
                                                   {FI_ENORX, Code::TransportError}};
  for (const auto& [number, code] : cases) {
    const auto fail_sends = std::make_shared<std::atomic<int>>(0);
    OfiJob job({.ranks = 3, .wrap = rough({.fail_sends = fail_sends})});
    ASSERT_TRUE(job.connect_all());
    *fail_sends = number;
    const auto sent = pattern(64, 1);
    ASSERT_TRUE(job.channel(0, 2).post_send({{}, sent, 1}).is_ok());
    ASSERT_TRUE(job.step_until([&job] { return !job.report(0).status.is_ok(); }));
    EXPECT_EQ(job.report(0).status.code(), code) << job.report(0).status.message();
    EXPECT_EQ(job.report(0).status.peers(), std::vector<int>{2});
    EXPECT_NE(job.report(0).status.message().find("rank 0 -> 2"), std::string::npos) << job.report(0).status.message();
  }
}

TEST(OfiRough, ConnectTriesAgainUntilGreetingsGetThrough) {
  const auto fail_sends = std::make_shared<std::atomic<int>>(FI_ECONNREFUSED);
  OfiJob job({.wrap = rough({.fail_sends = fail_sends})});
  std::thread healer([&fail_sends] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // some greetings fail before
    *fail_sends = 0;
  });
  EXPECT_TRUE(job.connect_all());
  healer.join();
}

TEST(OfiRough, ARankThatNobodyConnectsToNamesThem) {
  OfiJob job({.ranks = 3});
  const Status status = job.connect(std::chrono::seconds(1), 2)[0];
  EXPECT_EQ(status.code(), Code::Timeout);
  EXPECT_EQ(status.peers(), std::vector<int>{2});
}

TEST(OfiRough, ConnectSaysWhyAPeerIsMissing) {
  const auto fail_sends = std::make_shared<std::atomic<int>>(FI_ECONNREFUSED);
  OfiJob job({.wrap = rough({.fail_sends = fail_sends})});
  const Status status = job.connect(std::chrono::seconds(1), 0)[1];  // the higher rank connects
  EXPECT_EQ(status.code(), Code::Timeout);
  EXPECT_EQ(status.peers(), std::vector<int>{0});
  EXPECT_NE(status.message().find("refused"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace ccom::ofi
