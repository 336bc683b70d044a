// SPDX-License-Identifier: Apache-2.0
//
// The transport on a fabric that reorders, refuses and fails: nothing is assumed of order, flow control never runs out
// of buffers, and every failure names its peer. The whole conformance suite runs on such a fabric too
// (tests/conformance).
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <map>
#include <thread>

#include "tests/transport_ofi/ofi_job.h"
#include "tests/transport_ofi/rough_endpoint.h"

namespace ccom::ofi {
namespace {

Wrap rough(Roughness roughness) {
  return [roughness](Rank rank, std::unique_ptr<Endpoint> inner) {
    Roughness mine = roughness;
    mine.seed = roughness.seed * 100 + static_cast<uint64_t>(rank);
    return make_rough(std::move(inner), mine);
  };
}

// Messages of random sizes on every channel between all ranks; each must arrive in its place and in order.
void exchange(const Roughness& roughness, int ranks, int channels) {
  SCOPED_TRACE(testing::Message() << "seed " << roughness.seed);
  constexpr size_t kMessages = 20;
  OfiJob job({.ranks = ranks, .channels = channels, .wrap = rough(roughness)});
  ASSERT_TRUE(job.connect_all());
  std::mt19937_64 random(roughness.seed);
  struct Message {
    std::vector<std::byte> sent, received;
  };
  std::deque<Message> messages;
  std::map<std::tuple<Rank, Rank, int>, std::vector<Token>> expected;
  for (Rank from = 0; from < ranks; ++from) {
    for (Rank to = 0; to < ranks; ++to) {
      for (int index = 0; from != to && index < channels; ++index) {
        for (size_t i = 0; i < kMessages; ++i) {
          const size_t size = random() % 4 == 0 ? random() % 60'000 : random() % 500;
          messages.push_back({pattern(size, random()), std::vector<std::byte>(size)});
          Message& message = messages.back();
          const Envelope envelope{{i}};
          const Token token = messages.size();
          ASSERT_TRUE(job.channel(from, to, index).post_send({envelope, message.sent, token}).is_ok());
          if (random() % 3 == 0) job.step();
          ASSERT_TRUE(job.channel(to, from, index)
                          .post_receive({envelope, size, message.received.data(), nullptr, 1'000'000 + token})
                          .is_ok());
        }
      }
    }
  }
  const size_t each = messages.size() / static_cast<size_t>(ranks) * 2;
  EXPECT_TRUE(job.step_until([&job, each, ranks] {
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (job.report(rank).completed.size() < each) return false;
    }
    return true;
  }));
  for (Rank rank = 0; rank < ranks; ++rank)
    EXPECT_TRUE(job.report(rank).status.is_ok()) << job.report(rank).status.message();
  for (const Message& message : messages) ASSERT_EQ(message.sent, message.received);
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

TEST(OfiRough, ADamagedMessageIsATransportErrorAndNotDelivered) {
  const auto damage = std::make_shared<std::atomic<bool>>(false);
  OfiJob job({.wrap = rough({.damage = damage})});
  ASSERT_TRUE(job.connect_all());
  *damage = true;
  const auto sent = pattern(64, 1);
  std::vector<std::byte> received(64);
  ASSERT_TRUE(job.channel(1, 0).post_receive({{}, 64, received.data(), nullptr, 1}).is_ok());
  ASSERT_TRUE(job.channel(0, 1).post_send({{}, sent, 1}).is_ok());
  ASSERT_TRUE(job.step_until([&job] { return !job.report(1).status.is_ok(); }));
  EXPECT_EQ(job.report(1).status.code(), Code::TransportError);
  EXPECT_EQ(job.report(1).status.peers(), std::vector<int>{0});
  EXPECT_EQ(received, std::vector<std::byte>(64));
}

TEST(OfiRough, WithoutChecksumsDamageGoesThrough) {
  const auto damage = std::make_shared<std::atomic<bool>>(false);
  OfiJob job({.checksum = false, .wrap = rough({.damage = damage})});
  ASSERT_TRUE(job.connect_all());
  *damage = true;
  const auto sent = pattern(64, 1);
  std::vector<std::byte> received(64);
  ASSERT_TRUE(job.channel(1, 0).post_receive({{}, 64, received.data(), nullptr, 1}).is_ok());
  ASSERT_TRUE(job.channel(0, 1).post_send({{}, sent, 1}).is_ok());
  ASSERT_TRUE(job.step_until([&job] { return !job.report(1).completed.empty(); }));
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
