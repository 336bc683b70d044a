// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet through the socket of the server on their host: nothing of gRPC is used, who lacks the secret gets
// nothing, and where there is no such socket they meet over gRPC.
#include "bootstrap/socket_ranks.h"

#include <sys/socket.h>

#include "base/tcp_socket.h"
#include "bootstrap/grpc_use.h"
#include "bootstrap/host_relay.h"
#include "test_rendezvous.h"
#include "tests/harness/child.h"
#include "tests/harness/resources.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::HasSubstr;

RelayPlace place_of(const UniqueId& id) { return RelayPlace::of_server(id.secret, id.communicator); }

// Its children are told, if it ever has.
bool has_used_grpc() {
  return !holds_in_child([] { return check_grpc_after_fork().is_ok(); });
}

void meet_all(const UniqueId& id, int nranks) {
  run_ranks(nranks, [&](Rank rank) {
    const auto rendezvous = value_of(meet(id, nranks, rank, soon()));
    for (int round = 0; round < 3; ++round) {
      const auto parts = value_of(rendezvous->all_gather("round", std::to_string(rank), soon()));
      for (Rank of = 0; of < nranks; ++of) EXPECT_EQ(parts[static_cast<size_t>(of)], std::to_string(of));
    }
  });
}

// The first test of its process.
TEST(SocketRanks, UseNoGrpcAndTwoThreadsOfTheServer) {
  EXPECT_TRUE(holds_in_child([] {
    const int before = running_threads();
    TestServer hosted = start_test_server();
    const auto rank0 = meet(hosted.id, 1, 0, soon());
    return rank0 && (*rank0)->all_gather("hosts", "x", soon()) && running_threads() == before + 2 && !has_used_grpc();
  }));
}

// As where an id file is that of a start before: whatever the answer is, or none.
TEST(SocketRanks, AreProbedWithoutGrpc) {
  EXPECT_TRUE(holds_in_child([] {
    const auto says = [](const Status& answer, ErrorKey key) { return !answer.is_ok() && answer.key() == key; };
    TestServer hosted = start_test_server();
    const auto rank0 = meet(hosted.id, 2, 0, soon());
    if (!rank0 || !RendezvousProbe(2, 1).ask(hosted.id, soon()).is_ok()) return false;
    if (!says(RendezvousProbe(2, 0).ask(hosted.id, soon()), ErrorKey::RanksDisagree)) return false;
    if (!says(RendezvousProbe(3, 1).ask(hosted.id, soon()), ErrorKey::RanksDisagree)) return false;
    if ((*rank0)->has_failed()) return false;
    if (!says(join_to_be_refused(hosted.id, 3, 1, soon()), ErrorKey::RanksDisagree)) return false;
    if (!says(error_of((*rank0)->all_gather("hosts", "x", soon())), ErrorKey::RanksDisagree)) return false;
    hosted.server.reset();
    return says(RendezvousProbe(2, 1).ask(hosted.id, soon()), ErrorKey::ServerUnreachable) && !has_used_grpc();
  }));
}

TEST(SocketRanks, AreThoseOfOneStartAmongManyAtOneAddress) {
  for (int start = 0; start < 3; ++start) {
    const TestServer hosted = start_test_server();
    meet_all(hosted.id, 4);
    EXPECT_TRUE(hosted.server->wait_until_ended(soon()));
    EXPECT_FALSE(place_of(hosted.id).try_to_connect().is_open());
  }
}

// Rank 0 of the next start at the address is early: it has left this one, whose rank 1 has not.
TEST(SocketRanks, WaitForTheEndOfTheStartBefore) {
  const TestServer hosted = start_test_server();
  auto rank0 = value_of(meet(hosted.id, 2, 0, soon()));
  auto rank1 = value_of(meet(hosted.id, 2, 1, soon()));
  rank0.reset();
  const Status early = error_of(meet(hosted.id, 2, 0, Deadline::after_ms(300)));
  EXPECT_EQ(early.code(), Code::Timeout);
  EXPECT_THAT(early.message(), HasSubstr("the previous rendezvous at this address has not ended yet"));
  EXPECT_FALSE(rank1->has_failed());
}

TEST(SocketRanks, MayBeInterrupted) {
  const UniqueId id{
      .address = "127.0.0.1", .port = 1, .communicator = 1, .secret = Secret::random(), .rank0_serves = true};
  const auto begin = Clock::now();
  const Status interrupted = error_of(meet(id, 2, 1, soon(), [] { return true; }));
  EXPECT_EQ(interrupted.key(), ErrorKey::WaitInterrupted);
  const TestServer hosted = start_test_server();
  std::atomic<bool> is_enough = false;
  const auto rank0 = value_of(meet(hosted.id, 2, 0, soon(), [&] { return is_enough.load(); }));
  is_enough = true;
  EXPECT_EQ(error_of(rank0->all_gather("hosts", "x", soon())).key(), ErrorKey::WaitInterrupted);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

// Somebody else's socket, or none: a process of another user, or in another network namespace.
TEST(SocketRanks, MeetOverGrpcWhereTheyFindNoSocket) {
  const TestServer hosted = start_test_server();
  UniqueId unknown = hosted.id;
  unknown.communicator = 7;  // the name of the socket is another one, and gRPC's certificate is not
  const auto rank1 = value_of(meet(unknown, 2, 1, soon()));
  std::jthread other([&] { EXPECT_TRUE(rank1->all_gather("hosts", "x", soon())); });
  const auto rank0 = value_of(meet(hosted.id, 2, 0, soon()));
  EXPECT_TRUE(rank0->all_gather("hosts", "x", soon()));
}

TEST(SocketRanks, WhoLacksTheSecretGetsNoAnswerAndHindersNobody) {
  const TestServer hosted = start_test_server();
  Descriptor socket = place_of(hosted.id).connect();
  ASSERT_TRUE(socket.is_open());
  UniqueId other = hosted.id;
  other.secret = Secret::random();
  RelayLine stranger = RelayLine::connected(std::move(socket), place_of(other), 1);
  const Descriptor silent = place_of(hosted.id).connect();
  const Deadline deadline = soon();
  while (!stranger.has_ended() && !deadline.passed()) stranger.step();
  EXPECT_TRUE(stranger.has_ended() && !stranger.is_proved());
  meet_all(hosted.id, 3);
}

// The name was a process's that had just been killed.
TEST(SocketRanks, FindTheSocketOfAServerThatGetsItsNameLate) {
  const Secret secret = Secret::random();
  RelaySocket holder = RelayPlace::of_server(secret, 1).listen();
  ASSERT_TRUE(holder.is_open());
  const auto server =
      value_of(RendezvousServer::start({.address = "127.0.0.1", .secret = secret, .communicator = 1, .life = soon()}));
  holder.close();
  const UniqueId id{.address = "127.0.0.1", .port = server->port(), .communicator = 1, .secret = secret};
  EXPECT_TRUE(wait_until([&] { return place_of(id).try_to_connect().is_open(); }, std::chrono::seconds(5)));
  meet_all(id, 2);
}

}  // namespace
}  // namespace ccom
