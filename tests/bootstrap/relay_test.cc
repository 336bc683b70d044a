// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet through the relay of their host: they hear what they would hear if each spoke to the server itself.
#include <poll.h>

#include <array>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/private_file.h"
#include "bootstrap/grpc_caller.h"
#include "bootstrap/grpc_use.h"
#include "bootstrap/host_relay.h"
#include "bootstrap/relay_children.h"
#include "bootstrap/url.h"
#include "test_rendezvous.h"
#include "tests/harness/child.h"
#include "tests/harness/resources.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RelayUse relay_of(const std::string& host) { return {.host = host, .most_without = 0}; }
// Each rank is a host of its own, and few relays speak to the server.
RelayUse tree_of(Rank rank) { return {.host = std::to_string(rank), .most_without = 0, .most_in_star = 0}; }
TestServer start_server_of_tree(int degree) { return start_test_server(Deadline::after_ms(30000), degree); }

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

// A rank of three, in a process of its own, which waits after it has joined.
int join_and_wait(Rank rank, const RelayUse& relays, const PacketSocket& test) {
  const auto rendezvous =
      connect_rendezvous(*unpack(test.receive_value<UniqueId::Packed>()), 3, rank, soon(), {}, relays);
  // A relay that has taken part in an exchange is known to the one above.
  if (rendezvous && relays.most_in_star == 0) (void)(*rendezvous)->all_gather("hosts", "x", soon());
  test.send(rendezvous ? "!" : "?");
  return ::pause();
}

// Its children are told, if it ever has.
bool has_used_grpc() {
  return !holds_in_child([] { return check_grpc_after_fork().is_ok(); });
}

// Rank 2 of three, in a process of its own, which finds the id in a file and says how many threads it has more once it
// has joined; -1 if it has not, or has used gRPC.
int join_from_a_file(const PacketSocket& test) {
  const std::string path = test.receive();
  const int before = running_threads();  // a sanitizer has one of its own
  const auto no_id = []() -> Result<UniqueId> { return error(Code::InternalError, "this rank must not make an id"); };
  const auto id = unique_id_from_url("file://" + path, 3, 2, soon(), no_id);
  std::unique_ptr<Rendezvous> met;
  if (id) met = std::move(*connect_rendezvous(*id, 3, 2, soon(), {}, relay_of("")));
  const int threads = met == nullptr || has_used_grpc() ? -1 : running_threads() - before;
  test.send_value(threads);
  return ::pause();
}

class Relay : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto waits = [](Rank rank, const RelayUse& relays) {
      return std::make_unique<Child>([=](const PacketSocket& test) { return join_and_wait(rank, relays, test); },
                                     kSuiteSeconds);
    };
    relay = waits(1, relay_of(""));
    member = waits(2, relay_of(""));
    middle = waits(1, tree_of(1));
    leaf = waits(2, tree_of(2));
    reader = std::make_unique<Child>(&join_from_a_file, kSuiteSeconds);
  }
  static void TearDownTestSuite() {
    for (auto* const child : {&relay, &member, &middle, &leaf, &reader}) child->reset();
  }
  static void let_join(const Child& child, const UniqueId& id) {
    begin_to_join(child, id);
    EXPECT_EQ(child.receive(), "!");
  }
  static void let_meet(const Child& child, const std::vector<Rendezvous*>& others) {
    std::vector<std::jthread> ranks;
    for (Rendezvous* const other : others)
      ranks.emplace_back([other] { EXPECT_TRUE(other->all_gather("hosts", "x", soon())); });
    EXPECT_EQ(child.receive(), "!");
  }
  static void begin_to_join(const Child& child, const UniqueId& id) { child.send_value(*pack(id)); }
  // Of the victim, which is killed, by the others; `between` exchanges: the last of them notices before it asks.
  static void expect_death(Child& victim, Rank rank, const std::vector<Rendezvous*>& others, bool between = false) {
    const auto begin = Clock::now();
    victim.kill();
    while (between && !others.back()->has_failed() && Clock::now() - begin < std::chrono::seconds(5))
      std::this_thread::yield();
    for (Rendezvous* const other : others) expect_named(error_of(other->all_gather("addresses", "x", soon())), rank);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2)) << "not at the timeout";
  }
  static inline std::unique_ptr<Child> relay, member, middle, leaf, reader;
};

// The first test: its processes are forked before.
TEST_F(Relay, AMemberThatDiesIsNamed) {
  const TestServer hosted = start_test_server();
  const auto rank0 = value_of(connect_rendezvous(hosted.id, 3, 0, soon(), {}, relay_of("")));
  const auto rank1 = value_of(connect_rendezvous(hosted.id, 3, 1, soon(), {}, relay_of("")));
  let_join(*member, hosted.id);
  EXPECT_FALSE(rank0->has_failed());
  expect_death(*member, 2, {rank0.get(), rank1.get()}, true);
}

TEST_F(Relay, ARelayThatDiesIsNamedByTheRanksOfItsHostAndByOthers) {
  const TestServer hosted = start_test_server();
  let_join(*relay, hosted.id);
  const auto rank0 = value_of(connect_rendezvous(hosted.id, 3, 0, soon(), {}, relay_of("")));
  const auto rank2 = value_of(connect_rendezvous(hosted.id, 3, 2, soon(), {}, relay_of("elsewhere")));
  expect_death(*relay, 1, {rank0.get(), rank2.get()});
}

// Each thread of gRPC's, and a TLS handshake, for each of hundreds of processes were a fifth of what a start takes.
TEST_F(Relay, AMemberThatFindsTheIdInAFileUsesNoGrpc) {
  const TestServer hosted = start_test_server();
  const auto rank0 = value_of(connect_rendezvous(hosted.id, 3, 0, soon(), {}, relay_of("")));
  const TemporaryFolder folder;
  const auto packed = *pack(hosted.id);
  ASSERT_TRUE(write_private_file(folder / "id", {packed.data(), packed.size()}).is_ok());
  reader->send(folder / "id");
  EXPECT_EQ(reader->receive_value<int>(), 0);
}

// Relays come one after another, and each speaks to the one before.
TEST_F(Relay, ARelayBetweenOthersThatDiesIsNamedByAll) {
  const TestServer hosted = start_server_of_tree(1);
  const auto rank0 = value_of(connect_rendezvous(hosted.id, 3, 0, soon(), {}, tree_of(0)));
  begin_to_join(*middle, hosted.id);
  while (!RelayPlace(hosted.id, "1").connect().is_open()) std::this_thread::yield();
  const auto rank2 = value_of(connect_rendezvous(hosted.id, 3, 2, soon(), {}, tree_of(2)));
  let_meet(*middle, {rank0.get(), rank2.get()});
  EXPECT_EQ(count_connections(hosted.id.port), 2);
  expect_death(*middle, 1, {rank0.get(), rank2.get()});
}

TEST_F(Relay, ARelayThatDiesBelowOthersIsNamedByAll) {
  const TestServer hosted = start_server_of_tree(1);
  const auto rank0 = value_of(connect_rendezvous(hosted.id, 3, 0, soon(), {}, tree_of(0)));
  const auto rank1 = value_of(connect_rendezvous(hosted.id, 3, 1, soon(), {}, tree_of(1)));  // which rank 2 speaks to
  begin_to_join(*leaf, hosted.id);
  let_meet(*leaf, {rank0.get(), rank1.get()});
  expect_death(*leaf, 2, {rank0.get(), rank1.get()});
}

TEST(Relays, AreATreeWhereManyStart) {
  constexpr int kRanks = 15, kDegree = 2;
  const TestServer hosted = start_server_of_tree(kDegree);
  std::atomic<int> connections = 0;
  run_ranks(kRanks, [&](Rank rank) {
    const auto met = value_of(connect_rendezvous(hosted.id, kRanks, rank, soon(), {}, tree_of(rank)));
    for (int round = 0; round < 4; ++round) {
      const std::string phase = "phase " + std::to_string(round);
      const auto parts = value_of(met->all_gather(phase, phase + std::to_string(rank), soon()));
      for (Rank other = 0; other < kRanks; ++other)
        ASSERT_EQ(parts.at(static_cast<size_t>(other)), phase + std::to_string(other));
    }
    if (rank == 0) connections = count_connections(hosted.id.port);
    EXPECT_TRUE(met->all_gather("last", "", soon()));
  });
  EXPECT_EQ(connections, kDegree + 1) << "and that of rank 0";
  EXPECT_TRUE(hosted.server->wait_until_ended(soon())) << "all have left";
}

using RelaysOf = std::function<RelayUse(Rank)>;
RelayUse on_one_host(Rank) { return relay_of(""); }

// The last two never come.
void expect_missing_named(const TestServer& hosted, int nranks, int64_t timeout_ms, const RelaysOf& relays) {
  run_ranks(nranks - 2, [&](Rank rank) {
    const Deadline deadline = Deadline::after_ms(timeout_ms);
    const auto met = value_of(connect_rendezvous(hosted.id, nranks, rank, deadline, {}, relays(rank)));
    const auto parts = met->all_gather("hosts", "x", deadline);
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().key(), ErrorKey::NeverJoined) << parts.error().message();
    EXPECT_THAT(parts.error().peers(), ElementsAre(nranks - 2, nranks - 1));
  });
}

TEST(Relays, InATreeRanksThatNeverComeAreNamed) { expect_missing_named(start_server_of_tree(1), 5, 2500, tree_of); }
TEST(Relays, RanksThatNeverComeAreNamed) { expect_missing_named(start_test_server(), 4, 1500, on_one_host); }

void expect_leaver_named(const TestServer& hosted, int nranks, const RelaysOf& relays) {
  run_ranks(nranks, [&](Rank rank) {
    auto met = value_of(connect_rendezvous(hosted.id, nranks, rank, soon(), {}, relays(rank)));
    EXPECT_TRUE(met->all_gather("hosts", "x", soon()));
    if (rank == 1) return met.reset();
    const Status failure = error_of(met->all_gather("addresses", "x", soon()));
    EXPECT_THAT(failure.peers(), ElementsAre(1)) << failure.message();
  });
}

TEST(Relays, InATreeARankThatGivesUpIsNamed) { expect_leaver_named(start_server_of_tree(1), 4, tree_of); }
TEST(Relays, ARankThatGivesUpIsNamed) { expect_leaver_named(start_test_server(), 3, on_one_host); }

// Hosts between which the network lets nothing through to the ports of relays.
TEST(Relays, WhereARelayCannotBeReachedTheServerIs) {
  const TestServer hosted = start_server_of_tree(1);
  GrpcCaller out_of_reach(hosted.id, identity_of(3, 1), {});
  ASSERT_TRUE(out_of_reach.open().is_ok());
  wire::Request join = out_of_reach.identity();
  join.mutable_join()->set_relay_at("127.0.0.1:9");
  GrpcCall presence;
  ASSERT_TRUE(out_of_reach.exchange(join, soon(), &presence));
  const auto rank0 = value_of(connect_rendezvous(hosted.id, 3, 0, soon()));
  const auto rank2 = value_of(connect_rendezvous(hosted.id, 3, 2, soon(), {}, tree_of(2)));
  std::jthread first([&] { EXPECT_TRUE(rank0->all_gather("hosts", "x", soon())); });
  std::jthread second([&] {
    wire::Request say = out_of_reach.identity();
    *say.mutable_contribution() = contribution_of(0, "hosts", "x", soon());
    EXPECT_TRUE(out_of_reach.exchange(say, soon()));
  });
  EXPECT_TRUE(rank2->all_gather("hosts", "y", soon()));
}

TEST(Relays, TheServerHasAConnectionPerHost) {
  constexpr int kRanks = 8;
  const TestServer hosted = start_test_server();
  std::atomic<int> connections = 0;
  run_ranks(kRanks, [&](Rank rank) {
    const auto met = connect_rendezvous(hosted.id, kRanks, rank, soon(), {}, relay_of(rank % 2 == 0 ? "a" : "b"));
    ASSERT_TRUE(met) << message_of(met);
    for (int round = 0; round < 3; ++round) {
      const std::string phase = "phase " + std::to_string(round);
      const auto parts =
          value_of((*met)->all_gather(phase, std::string(static_cast<size_t>(50'000 * rank), 'x'), soon()));
      ASSERT_EQ(parts.size(), static_cast<size_t>(kRanks));
      for (Rank other = 0; other < kRanks; ++other)
        EXPECT_EQ(parts[static_cast<size_t>(other)].size(), static_cast<size_t>(50'000 * other));
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
  run_ranks(4, [&](Rank rank) {
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

TEST(Relays, OfOtherHostsProveThatTheyHoldTheSecret) {
  const UniqueId id{.address = "127.0.0.1", .communicator = 1, .secret = Secret::random()};
  RelayChildren children({});
  children.listen(id, {});
  const auto at = value_of(parse_host_port(children.endpoint()));
  for (const bool holds : {false, true}) {
    UniqueId relay = id;
    relay.address = at.host;
    relay.port = at.port;
    if (!holds) relay.secret = Secret::random();
    GrpcCaller caller(relay, identity_of(3, 1), {});
    ASSERT_TRUE(caller.open().is_ok());
    wire::Request join = caller.identity();
    join.mutable_join();
    const Deadline deadline = Deadline::after_ms(holds ? 20000 : 1000);
    std::jthread speaker([&] { EXPECT_EQ(bool{caller.exchange(join, deadline)}, holds); });
    size_t joined = 0;
    for (; joined == 0 && !deadline.passed(); std::this_thread::yield()) {
      (void)children.step();
      for (const RelayChildren::Joining& each : children.take_joins()) {
        children.answer(each, {});
        ++joined;
      }
    }
    EXPECT_EQ(joined, holds ? 1U : 0U);
  }
}

TEST(Relays, WhoLacksTheSecretGetsNoAnswerAndHindersNobody) {
  const TestServer hosted = start_test_server();
  const auto rank0 = value_of(connect_rendezvous(hosted.id, 2, 0, soon(), {}, relay_of("")));
  Descriptor socket = RelayPlace(hosted.id, "").connect();
  ASSERT_TRUE(socket.is_open());
  UniqueId other = hosted.id;
  other.secret = Secret::random();
  RelayLine stranger = RelayLine::connected(std::move(socket), RelayPlace(other, ""), 1);
  const Descriptor silent = RelayPlace(hosted.id, "").connect();
  const Deadline deadline = soon();
  while (!stranger.has_ended() && !deadline.passed()) stranger.step();
  EXPECT_TRUE(stranger.has_ended() && !stranger.is_proved());
  const auto rank1 = value_of(connect_rendezvous(hosted.id, 2, 1, soon(), {}, relay_of("")));
  std::jthread other_rank([&] { EXPECT_TRUE(rank0->all_gather("hosts", "x", soon())); });
  EXPECT_TRUE(rank1->all_gather("hosts", "x", soon()));
}

// gRPC hung or crashed there.
TEST(Grpc, AChildOfAUserIsToldAtOnce) {
  SKIP_WHERE_ALLOCATORS_DO_NOT_FORK();
  const TestServer hosted = start_test_server();
  const auto met = value_of(connect_rendezvous(hosted.id, 1, 0, soon()));
  EXPECT_TRUE(holds_in_child([&] {
    ::alarm(20);
    const auto joined = connect_rendezvous(hosted.id, 1, 0, soon());
    return !joined && joined.error().key() == ErrorKey::Forked;
  }));
}

}  // namespace
}  // namespace ccom
