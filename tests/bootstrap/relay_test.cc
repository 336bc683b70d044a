// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet through the relay of their host: they hear what they would hear if each spoke to the server itself.
#include <poll.h>

#include <fstream>
#include <sstream>

#include "bootstrap/host_relay.h"
#include "child_process.h"
#include "test_rendezvous.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RelayUse relay_of(const std::string& host) { return {.host = host, .most_without = 0}; }

// Established connections of this network namespace to a port.
int count_connections(uint16_t port) {
  int count = 0;
  std::stringstream table;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) table << std::ifstream(file).rdbuf();
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    const size_t colon = remote.find(':');
    if (colon != std::string::npos && state == "01" && std::stoul(remote.substr(colon + 1), nullptr, 16) == port)
      ++count;
  }
  return count;
}

// Rank `victim` of three, in a process of its own, which waits after it has joined.
[[noreturn]] void join_and_wait(Rank rank, int down, int up) {
  UniqueId::Packed packed;
  if (::read(down, packed.data(), packed.size()) != static_cast<ssize_t>(packed.size())) ::_exit(1);
  const auto rendezvous = connect_rendezvous(*unpack(packed), 3, rank, soon(), {}, relay_of(""));
  (void)!::write(up, rendezvous ? "!" : "?", 1);
  while (true) ::pause();
}

class Relay : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    relay = std::make_unique<Child>([](int down, int up) { join_and_wait(1, down, up); });
    member = std::make_unique<Child>([](int down, int up) { join_and_wait(2, down, up); });
  }
  static void TearDownTestSuite() {
    relay.reset();
    member.reset();
  }
  static void let_join(const Child& child, const UniqueId& id) {
    child.start();
    child.tell(*pack(id));
    EXPECT_EQ(child.hear<char>(), '!');
  }
  static inline std::unique_ptr<Child> relay, member;
};

void expect_named(const Status& failure, Rank rank) {
  EXPECT_EQ(failure.code(), Code::RemoteError);
  EXPECT_THAT(failure.peers(), ElementsAre(rank));
  EXPECT_THAT(failure.message(), HasSubstr("rank " + std::to_string(rank) + " (process "));
}

// The first test: its processes are forked before.
TEST_F(Relay, AMemberThatDiesIsNamed) {
  const TestServer hosted = start_test_server();
  const auto rank0 = connect_rendezvous(hosted.id, 3, 0, soon(), {}, relay_of(""));
  const auto rank1 = connect_rendezvous(hosted.id, 3, 1, soon(), {}, relay_of(""));
  ASSERT_TRUE(rank0 && rank1) << message_of(rank0) << message_of(rank1);
  let_join(*member, hosted.id);
  EXPECT_FALSE((*rank0)->has_failed());
  const auto begin = Clock::now();
  member->kill();
  while (!(*rank1)->has_failed() && Clock::now() - begin < std::chrono::seconds(5)) std::this_thread::yield();
  for (const auto& rank : {&rank0, &rank1}) {
    const auto parts = (**rank)->all_gather("addresses", "x", soon());
    ASSERT_FALSE(parts);
    expect_named(parts.error(), 2);
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2)) << "not at the timeout";
}

TEST_F(Relay, ARelayThatDiesIsNamedByTheRanksOfItsHostAndByOthers) {
  const TestServer hosted = start_test_server();
  let_join(*relay, hosted.id);
  const auto rank0 = connect_rendezvous(hosted.id, 3, 0, soon(), {}, relay_of(""));
  const auto rank2 = connect_rendezvous(hosted.id, 3, 2, soon(), {}, relay_of("elsewhere"));
  ASSERT_TRUE(rank0 && rank2) << message_of(rank0) << message_of(rank2);
  const auto begin = Clock::now();
  relay->kill();
  for (const auto& rank : {&rank0, &rank2}) {
    const auto parts = (**rank)->all_gather("addresses", "x", soon());
    ASSERT_FALSE(parts);
    expect_named(parts.error(), 1);
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2)) << "not at the timeout";
}

TEST(Relays, TheServerHasAConnectionPerHost) {
  constexpr int kRanks = 8;
  const TestServer hosted = start_test_server();
  std::atomic<int> connections = 0;
  as_ranks(kRanks, [&](Rank rank) {
    const auto met = connect_rendezvous(hosted.id, kRanks, rank, soon(), {}, relay_of(rank % 2 == 0 ? "a" : "b"));
    ASSERT_TRUE(met) << message_of(met);
    for (int round = 0; round < 3; ++round) {
      const std::string phase = "phase " + std::to_string(round);
      const auto parts = (*met)->all_gather(phase, std::string(static_cast<size_t>(1000 * rank), 'x'), soon());
      ASSERT_TRUE(parts) << message_of(parts);
      ASSERT_EQ(parts->size(), static_cast<size_t>(kRanks));
      for (Rank other = 0; other < kRanks; ++other)
        EXPECT_EQ((*parts)[static_cast<size_t>(other)].size(), static_cast<size_t>(1000 * other));
    }
    if (rank == 0) connections = count_connections(hosted.id.port);
    EXPECT_TRUE((*met)->all_gather("last", "", soon()));
  });
  EXPECT_EQ(connections, 2);
  EXPECT_TRUE(hosted.server->wait_until_ended(soon())) << "all have left";
  for (const char* host : {"a", "b"}) EXPECT_FALSE(RelayPlace(hosted.id, host).connect().is_open());
}

TEST(Relays, WhatTheServerRefusesEveryRankHears) {
  const TestServer hosted = start_test_server();
  as_ranks(4, [&](Rank rank) {
    const int nranks = rank == 3 ? 5 : 4;
    const auto met = connect_rendezvous(hosted.id, nranks, rank, soon(), {}, relay_of(""));
    const auto parts = met ? (*met)->all_gather("hosts", "x", soon()) : Status(met.error());
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().key(), ErrorKey::RanksDisagree) << parts.error().message();
  });
}

TEST(Relays, ASecondProcessOfARankIsRefused) {
  const TestServer hosted = start_test_server();
  const auto first = connect_rendezvous(hosted.id, 2, 0, soon(), {}, relay_of(""));
  const auto second = connect_rendezvous(hosted.id, 2, 0, soon(), {}, relay_of(""));
  ASSERT_TRUE(first && !second);
  EXPECT_EQ(second.error().key(), ErrorKey::RanksDisagree);
  EXPECT_THAT(second.error().message(), HasSubstr("rank 0 joined twice"));
}

TEST(Relays, ARankThatGivesUpIsNamed) {
  const TestServer hosted = start_test_server();
  as_ranks(3, [&](Rank rank) {
    auto met = connect_rendezvous(hosted.id, 3, rank, soon(), {}, relay_of(""));
    ASSERT_TRUE(met) << message_of(met);
    EXPECT_TRUE((*met)->all_gather("hosts", "x", soon()));
    if (rank == 1) return met->reset();
    const auto parts = (*met)->all_gather("addresses", "x", soon());
    ASSERT_FALSE(parts);
    EXPECT_THAT(parts.error().peers(), ElementsAre(1)) << parts.error().message();
  });
}

TEST(Relays, RanksThatNeverComeAreNamed) {
  const TestServer hosted = start_test_server();
  as_ranks(2, [&](Rank rank) {
    const Deadline deadline = Deadline::after_ms(1500);
    const auto met = connect_rendezvous(hosted.id, 4, rank, deadline, {}, relay_of(""));
    ASSERT_TRUE(met) << message_of(met);
    const auto parts = (*met)->all_gather("hosts", "x", deadline);
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().key(), ErrorKey::NeverJoined) << parts.error().message();
    EXPECT_THAT(parts.error().peers(), ElementsAre(2, 3));
  });
}

TEST(Relays, WhoLacksTheSecretGetsNoAnswerAndHindersNobody) {
  const TestServer hosted = start_test_server();
  const auto rank0 = connect_rendezvous(hosted.id, 2, 0, soon(), {}, relay_of(""));
  ASSERT_TRUE(rank0) << message_of(rank0);
  Descriptor socket = RelayPlace(hosted.id, "").connect();
  ASSERT_TRUE(socket.is_open());
  UniqueId other = hosted.id;
  other.secret = Secret::random();
  RelayLine stranger = RelayLine::connected(std::move(socket), RelayPlace(other, ""), 1);
  const Descriptor silent = RelayPlace(hosted.id, "").connect();
  const Deadline deadline = soon();
  while (!stranger.has_ended() && !deadline.passed()) stranger.step();
  EXPECT_TRUE(stranger.has_ended() && !stranger.is_proved());
  const auto rank1 = connect_rendezvous(hosted.id, 2, 1, soon(), {}, relay_of(""));
  ASSERT_TRUE(rank1) << message_of(rank1);
  std::jthread other_rank([&] { EXPECT_TRUE((*rank0)->all_gather("hosts", "x", soon())); });
  EXPECT_TRUE((*rank1)->all_gather("hosts", "x", soon()));
}

}  // namespace
}  // namespace ccom
