// SPDX-License-Identifier: Apache-2.0
//
// A peer that holds the key and says what no peer of this build says: it is refused by an error that names it. Found
// with tests/fuzz/ofi_targets.cc, and while that was written.
#include <gtest/gtest.h>

#include <cstddef>
#include <thread>

#include "tests/transport_ofi/memory_endpoint.h"
#include "transports/ofi/addresses.h"
#include "transports/ofi/checksum.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

constexpr uint64_t kCommunicator = 5;

std::unique_ptr<OfiTransport> make_rank(MemoryFabric& fabric, Rank rank, const Secret& key) {
  auto endpoint = fabric.open();
  std::vector<std::unique_ptr<Endpoint>> rails;
  rails.push_back(fabric.open());
  const OfiConfig config{
      .rank = rank, .communicator = kCommunicator, .key = key, .provider = "memory", .bind_address = ""};
  return *OfiTransport::create(config, std::move(endpoint), std::move(rails));
}

// What rank 0 says to a Hello of rank 1 with these terms.
Status answer_to(const LinkTerms& terms) {
  MemoryFabric fabric(2048);
  const Secret key = Secret::random();
  const auto rank0 = make_rank(fabric, 0, key);
  const auto mailbox = fabric.open(), rail = fabric.open();
  Handshake handshake = Handshake::connector({HandshakeProtocol::Ofi, key, kCommunicator, 1}, 0);
  bool is_confirmed = false;
  fabric.set_hook([&](size_t endpoint, MemoryFabric::Arrival, Bytes bytes) {
    if (endpoint == 0 || !handshake.receive(bytes) || std::exchange(is_confirmed, true)) return;
    fabric.deliver(0, handshake.next().bytes());
  });
  fabric.deliver(0, handshake.next(terms).bytes());
  const Peer peer{1, join_addresses({mailbox->address(), rail->address()}), 1};
  Status status = rank0->connect({&peer, 1}, Deadline::after(std::chrono::seconds(30)));
  fabric.set_hook({});
  fabric.cut();
  return status;
}

LinkTerms right_terms() {
  return {.channels = 1,
          .credits = 8,
          .fragment_bytes = 2048 - sizeof(Header),
          .checksummed = 1,
          .slots = {.address = 4096, .keys = {1}, .rails = 1, .window = 8, .slots = 4, .slot_bytes = 65536}};
}

TEST(OfiFalsePeer, IsAcceptedWhileItsTermsAreRight) { EXPECT_EQ(answer_to(right_terms()).message(), ""); }

// Slots of 0 bytes made a rank divide by zero when it announced the target of a large receive; without a window, or
// with slots that wrap its count, large sends waited for ever.
TEST(OfiFalsePeer, IsRefusedIfItsSlotsCannotBeUsed) {
  const auto refused = [](auto spoil) {
    LinkTerms terms = right_terms();
    spoil(terms.slots);
    const Status status = answer_to(terms);
    EXPECT_EQ(status.code(), Code::TransportError) << status.message();
    EXPECT_EQ(status.peers(), std::vector<int>{1});
    EXPECT_NE(status.message().find("invalid terms"), std::string::npos) << status.message();
  };
  refused([](SlotTerms& slots) { slots.slot_bytes = 0; });
  refused([](SlotTerms& slots) { slots.window = 0; });
  refused([](SlotTerms& slots) { slots.slots = 0; });
  refused([](SlotTerms& slots) { slots.slots = ~uint32_t{0}; });
}

// Each target that a peer announces is kept until its message is sent. A peer has four open at most, but one that
// announced them without end made this rank keep them all.
TEST(OfiFalsePeer, IsRefusedIfItAnnouncesTargetsWithoutEnd) {
  MemoryFabric fabric(2048);
  const Secret key = Secret::random();
  std::unique_ptr<OfiTransport> ranks[2] = {make_rank(fabric, 0, key), make_rank(fabric, 1, key)};
  const auto connect = [&ranks](Rank rank) {
    const Peer peer{1 - rank, ranks[1 - rank]->address(), 1};
    EXPECT_EQ(ranks[rank]->connect({&peer, 1}, Deadline::after(std::chrono::seconds(30))).message(), "");
  };
  std::thread other(connect, 1);
  connect(0);
  other.join();
  std::vector<std::byte> announced;  // a true one
  fabric.set_hook([&announced](size_t endpoint, MemoryFabric::Arrival kind, Bytes bytes) {
    if (endpoint != 0 || kind != MemoryFabric::Arrival::Message || bytes.size() < sizeof(Header)) return;
    if (read_as<Header>(bytes).prefix.kind == Kind::Target) announced.assign(bytes.begin(), bytes.end());
  });
  std::vector<std::byte> target(300'000);
  ASSERT_TRUE((*ranks[1]->channel(0, 0))->post_receive({{}, target.size(), target.data(), nullptr, 1}).is_ok());
  Events events;
  for (int round = 0; round < 100 && announced.empty(); ++round) ASSERT_TRUE(ranks[1]->progress(events).is_ok());
  ASSERT_FALSE(announced.empty());
  fabric.set_hook({});
  Status status;
  for (uint64_t message = 1; message < 20 && status.is_ok(); ++message) {
    std::memcpy(announced.data() + offsetof(Header, message), &message, sizeof message);
    const uint32_t checksum = checksum_of(announced.data(), announced.size());
    std::memcpy(announced.data() + offsetof(Header, checksum), &checksum, sizeof checksum);
    fabric.deliver(0, announced);
    status = ranks[0]->progress(events);
  }
  EXPECT_EQ(status.code(), Code::TransportError) << status.message();
  EXPECT_EQ(status.peers(), std::vector<int>{1});
  fabric.cut();
}

}  // namespace
}  // namespace ccom::ofi
