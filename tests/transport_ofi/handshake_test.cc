// SPDX-License-Identifier: Apache-2.0
//
// Nobody gets in: a link begins with a handshake (tests/base/handshake_test.cc), later messages carry a session number;
// whatever else arrives is dropped and counted, and disturbs nothing. The intruder here is a bare endpoint of the same
// provider.
#include <gtest/gtest.h>

#include <thread>

#include "base/handshake.h"
#include "tests/transport_ofi/ofi_job.h"
#include "transports/ofi/addresses.h"
#include "transports/ofi/fabric.h"

namespace ccom::ofi {
namespace {

// Sends raw bytes to a transport.
class Intruder {
 public:
  explicit Intruder(const std::string& victim) {
    auto opened = open_fabric("tcp;ofi_rxm", "127.0.0.1");
    if (!opened) throw std::runtime_error(opened.error().message());
    endpoint_ = *std::move(opened);
    victim_ = *endpoint_->insert(split_addresses(victim).front());
    region_ = *endpoint_->allocate(16384);
    operation_.operation_kind = OperationKind::Send;
    operation_.data = region_.bytes.data();
    operation_.descriptor = region_.descriptor;
  }
  ~Intruder() { endpoint_.reset(); }

  // Until the provider has taken it; `meanwhile` lets the victim accept the connection.
  bool send(ConstBytes bytes, const std::function<void()>& meanwhile) {
    std::copy(bytes.begin(), bytes.end(), operation_.data);
    operation_.size_bytes = bytes.size();
    bool is_posted = false;
    std::vector<Completion> completions;
    const Deadline deadline = Deadline::after(kPatience);
    while (completions.empty() && !deadline.passed()) {
      if (!is_posted) is_posted = endpoint_->post_send(victim_, operation_) == 0;
      if (!endpoint_->poll(completions).is_ok()) return false;
      meanwhile();
    }
    return !completions.empty() && completions.front().error == 0;
  }

 private:
  std::unique_ptr<Endpoint> endpoint_;
  uint64_t victim_ = 0;
  Region region_;
  Operation operation_;
};

template <typename T>
ConstBytes as_bytes(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

TEST(OfiIntruder, IsDroppedAndCountedAndDisturbsNothing) {
  OfiJob job({});
  ASSERT_TRUE(job.connect_all());
  const OfiConfig config = job.config(1);
  Intruder intruder(job[0].address());
  const Prefix known{.kind = Kind::Data, .communicator = config.communicator, .from = 1, .to = 0};
  Header guess;  // all but the session word is right
  guess.prefix = known;
  guess.payload_bytes = 0;
  Header zero_session = guess;
  guess.session = 0x123456789abcdef;
  Header other_communicator = guess;
  other_communicator.prefix.communicator ^= 1;
  Header goodbye = guess;
  goodbye.prefix.kind = Kind::Goodbye;
  const Secret other_key = Secret::random();
  const auto rank1 = [&config](HandshakeProtocol protocol, const Secret& key) {
    return HandshakeIdentity{protocol, key, config.communicator, 1};
  };
  const HandshakeMessage forged = Handshake::connector(rank1(HandshakeProtocol::Ofi, other_key), 0).next();
  const HandshakeMessage control = Handshake::connector(rank1(HandshakeProtocol::Control, config.key), 0).next();
  // Authentic, but of another conversation: as if recorded.
  Handshake old = Handshake::connector(rank1(HandshakeProtocol::Ofi, config.key), 0);
  Handshake old_acceptor = Handshake::acceptor({HandshakeProtocol::Ofi, config.key, config.communicator, 0});
  const HandshakeMessage hello = old.next();
  ASSERT_TRUE(old_acceptor.receive(hello));
  const HandshakeMessage answer = old_acceptor.next();
  ASSERT_TRUE(old.receive(answer));
  const HandshakeMessage confirm = old.next();
  const std::vector<std::byte> noise = pattern(16384, 3);
  const std::vector<ConstBytes> messages = {as_bytes(guess),
                                            as_bytes(zero_session),
                                            as_bytes(other_communicator),
                                            as_bytes(goodbye),
                                            as_bytes(forged),
                                            as_bytes(control),
                                            as_bytes(hello),
                                            as_bytes(answer),
                                            as_bytes(confirm),
                                            noise,
                                            ConstBytes(noise).first(3),
                                            as_bytes(known)};
  const auto step = [&job] { job.step(); };
  for (const ConstBytes message : messages) ASSERT_TRUE(intruder.send(message, step));
  EXPECT_TRUE(job.step_until([&job, &messages] { return job[0].dropped_messages() == messages.size(); }))
      << job[0].dropped_messages();
  // More of them than there are buffers.
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(intruder.send(as_bytes(guess), step));
  EXPECT_TRUE(job.carry(1, 0, 50'000)) << job.report(0).status.message();
}

TEST(OfiConnect, RanksWithDifferentSecretsDoNotMeetAndSaySo) {
  OfiJob one({}), other({});
  const std::string address = one[0].address(), other_address = other[1].address();
  Status status;
  std::thread stranger([&other, &address] {
    const Peer peer{0, address, 1};
    (void)other[1].connect(std::span(&peer, 1), Deadline::after_ms(600));
  });
  const Peer peer{1, other_address, 1};
  status = one[0].connect(std::span(&peer, 1), Deadline::after_ms(600));
  stranger.join();
  EXPECT_EQ(status.code(), Code::Timeout);
  EXPECT_EQ(status.peers(), std::vector<int>{1});
}

TEST(OfiConnect, DifferentNumbersOfChannelsAreAConfigError) {
  OfiJob job({});
  std::vector<Status> results(2);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&job, &results, rank, address = job[1 - rank].address()] {
      const Peer peer{1 - rank, address, 1 + rank};
      results[static_cast<size_t>(rank)] = job[rank].connect(std::span(&peer, 1), Deadline::after(kPatience));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const bool is_reported = results[0].code() == Code::ConfigError || results[1].code() == Code::ConfigError;
  EXPECT_TRUE(is_reported) << results[0].message() << " / " << results[1].message();
  EXPECT_FALSE(results[0].is_ok() && results[1].is_ok());
}

TEST(OfiConnect, RefusesPeersThatMakeNoSense) {
  const std::vector<Peer> senseless = {{0, "x", 1}, {1, "x", 0}, {1, "x", kMaxChannels + 1}, {-1, "x", 1}, {1, "x", 1}};
  for (const Peer& peer : senseless) {
    OfiJob job({});
    EXPECT_EQ(job[0].connect(std::span(&peer, 1), Deadline::after_ms(100)).code(), Code::InvalidArgument);
  }
  OfiJob job({});
  const std::vector<Peer> twins(2, Peer{1, job[1].address(), 1});
  EXPECT_EQ(job[0].connect(twins, Deadline::after_ms(100)).code(), Code::InvalidArgument);
}

TEST(OfiConnect, ARankWithoutPeersIsConnectedAtOnce) {
  OfiJob job({.ranks = 1});
  EXPECT_TRUE(job.connect_all());
  EXPECT_EQ(job[0].memory_bytes(), 0u);
}

}  // namespace
}  // namespace ccom::ofi
