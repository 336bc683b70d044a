// SPDX-License-Identifier: Apache-2.0
//
// What is reported of a peer that has gone: killed (a process of its own), or closed in good order.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/harness/child.h"
#include "tests/transport_ofi/ofi_job.h"
#include "transports/ofi/fabric.h"

namespace ccom::ofi {
namespace {

std::unique_ptr<Transport> join(Rank rank, const PacketSocket& other, const Secret& key) {
  auto made = make_ofi_transport({.rank = rank, .communicator = 1, .key = key, .bind_address = "127.0.0.1"});
  if (!made) return nullptr;
  other.send((*made)->address());
  const Peer peer{1 - rank, other.receive(), 1};
  const Status status = (*made)->connect(std::span(&peer, 1), Deadline::after(kPatience));
  return status.is_ok() ? *std::move(made) : nullptr;
}

TEST(OfiDeadPeer, SendingToAKilledProcessIsARemoteErrorThatNamesIt) {
  const Secret key = Secret::random();
  Child victim([&key](const PacketSocket& other) {  // rank 1, which never does anything again
    const auto transport = join(1, other, key);
    return transport == nullptr ? 1 : pause();
  });
  const auto transport = join(0, victim, key);
  ASSERT_NE(transport, nullptr);
  victim.kill();
  const auto sent = pattern(100, 1);
  Channel& channel = **transport->channel(1, 0);
  Events events;
  Status status;
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  for (Token token = 0; status.is_ok() && !deadline.passed(); ++token) {
    if (token < 20) status = channel.post_send({{}, sent, token});
    if (status.is_ok()) status = transport->progress(events);
    transport->wait(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(status.code(), Code::RemoteError) << status.message();
  EXPECT_EQ(status.peers(), std::vector<int>{1});
  Events nothing;
  EXPECT_FALSE(transport->progress(nothing).is_ok()) << "errors are final";
  EXPECT_FALSE(channel.post_send({{}, sent, 1}).is_ok());
}

TEST(OfiDeadPeer, BusinessWithAPeerThatHasClosedIsARemoteErrorThatNamesIt) {
  for (const bool is_send : {true, false}) {
    OfiJob job({.ranks = 3});
    ASSERT_TRUE(job.connect_all());
    std::thread leaver([&job] { job.destroy(1); });
    const auto bytes = pattern(100, 1);
    std::vector<std::byte> received(100);
    Channel& channel = job.channel(0, 1);
    ASSERT_TRUE((is_send ? channel.post_send({{}, bytes, 1})
                         : channel.post_receive({{}, received.size(), received.data(), nullptr, 1}))
                    .is_ok());
    Events events;
    Status status;
    for (const Deadline deadline = Deadline::after(kPatience); status.is_ok() && !deadline.passed();) {
      if (is_send) (void)channel.post_send({{}, bytes, 1});
      status = job[0].progress(events);
    }
    leaver.join();
    EXPECT_EQ(status.code(), Code::RemoteError) << status.message();
    EXPECT_EQ(status.peers(), std::vector<int>{1});
  }
}

}  // namespace
}  // namespace ccom::ofi
