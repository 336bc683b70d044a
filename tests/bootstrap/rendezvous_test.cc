// SPDX-License-Identifier: Apache-2.0
//
// Ranks, which are threads, meet at a server: it gathers, it names who is missing or wrong, and nothing is left
// afterwards. Compiled twice: they meet through the server's socket, or over gRPC on loopback.
#include <latch>
#include <memory>

#include "base/tcp_socket.h"
#include "test_rendezvous.h"
#include "tests/harness/resources.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RendezvousOf : public ::testing::TestWithParam<int> {};

TEST_P(RendezvousOf, GathersSeveralRounds) {
  const int nranks = GetParam();
  const TestServer hosted = start_test_server();
  run_ranks(nranks, [&](Rank rank) {
    const auto rendezvous = value_of(meet(hosted.id, nranks, rank, soon()));
    for (int round = 0; round < 4; ++round) {
      const auto text = [round](Rank of) {
        return std::string(static_cast<size_t>(round * of), 'x') + std::to_string(of);
      };
      const auto parts = value_of(rendezvous->all_gather("round " + std::to_string(round), text(rank), soon()));
      ASSERT_EQ(parts.size(), static_cast<size_t>(nranks));
      for (Rank of = 0; of < nranks; ++of) EXPECT_EQ(parts[static_cast<size_t>(of)], text(of));
    }
  });
  EXPECT_TRUE(hosted.server->wait_until_ended(soon()));
}
INSTANTIATE_TEST_SUITE_P(Ranks, RendezvousOf, ::testing::Values(1, 2, 5, 16));

TEST(Rendezvous, CarriesTheLargestPartAndRefusesALargerOne) {
  constexpr size_t kMebibyte = size_t{1} << 20;
  const TestServer hosted = start_test_server();
  run_ranks(3, [&](Rank rank) {
    const auto rendezvous = value_of(meet(hosted.id, 3, rank, soon()));
    const auto too_large = rendezvous->all_gather("large", std::string(kMebibyte + 1, 'x'), soon());
    EXPECT_THAT(message_of(too_large), HasSubstr("1048577"));
    const auto parts =
        value_of(rendezvous->all_gather("large", std::string(kMebibyte, static_cast<char>('a' + rank)), soon()));
    for (size_t of = 0; of < 3; ++of) EXPECT_EQ(parts[of], std::string(kMebibyte, static_cast<char>('a' + of)));
  });
}

TEST(Rendezvous, TellsRanksThatNeverCameFromThoseThatAreLate) {
  const TestServer hosted = start_test_server();
  const auto late = value_of(meet(hosted.id, 4, 3, soon()));
  run_ranks(2, [&](Rank rank) {
    const auto rendezvous = value_of(meet(hosted.id, 4, rank, soon()));
    const Deadline deadline = Deadline::after_ms(800);
    const Status failure = error_of(rendezvous->all_gather("addresses", "x", deadline));
    EXPECT_FALSE(deadline.passed());
    EXPECT_EQ(failure.code(), Code::Timeout);
    EXPECT_THAT(failure.message(), HasSubstr("ranks 2 and 3 of 4 (rank 2 never joined)"));
    EXPECT_THAT(failure.peers(), ElementsAre(2, 3));
  });
}

TEST(Rendezvous, TellsALateRankWhyTheOthersGaveUp) {
  const TestServer hosted = start_test_server();
  const auto early = value_of(meet(hosted.id, 2, 0, soon()));
  const Status failure = error_of(early->all_gather("addresses", "x", Deadline::after_ms(2000)));
  const auto late = meet(hosted.id, 2, 1, soon());
  EXPECT_EQ(message_of(late), failure.message());
}

TEST(Rendezvous, EndsEveryWaitWhenARankLeaves) {
  const TestServer hosted = start_test_server();
  std::latch both_in(2);
  run_ranks(2, [&](Rank rank) {
    auto rendezvous = value_of(meet(hosted.id, 2, rank, soon()));
    both_in.arrive_and_wait();
    if (rank == 1) return;
    const Status failure = error_of(rendezvous->all_gather("addresses", "x", soon()));
    EXPECT_EQ(failure.code(), Code::RemoteError);
    EXPECT_THAT(failure.message(), HasSubstr("rank 1"));
    EXPECT_THAT(failure.peers(), ElementsAre(1));
  });
}

TEST(Rendezvous, RefusesAnotherNumberOfRanks) {
  const TestServer hosted = start_test_server();
  const auto first = value_of(meet(hosted.id, 4, 0, soon()));
  const Status second = error_of(meet(hosted.id, 8, 5, soon()));
  EXPECT_EQ(second.code(), Code::ConfigError);
  EXPECT_THAT(second.message(), AllOf(HasSubstr("rank 5"), HasSubstr("8 ranks"), HasSubstr("rank 0"), HasSubstr("4")));
  EXPECT_THAT(second.peers(), ElementsAre(0, 5));
  const auto told_too = first->all_gather("addresses", "x", soon());
  EXPECT_EQ(message_of(told_too), second.message());
}

TEST(Rendezvous, RefusesARankThatCameAlready) {
  const TestServer hosted = start_test_server();
  const auto first = value_of(meet(hosted.id, 4, 3, soon()));
  const Status second = error_of(meet(hosted.id, 4, 3, soon()));
  EXPECT_EQ(second.code(), Code::ConfigError);
  EXPECT_THAT(second.message(), HasSubstr("rank 3 joined twice: process"));
  EXPECT_THAT(second.peers(), ElementsAre(3));
}

TEST(Rendezvous, RefusesRanksAtDifferentExchanges) {
  const TestServer hosted = start_test_server();
  run_ranks(2, [&](Rank rank) {
    const auto rendezvous = value_of(meet(hosted.id, 2, rank, soon()));
    const auto parts = rendezvous->all_gather(rank == 0 ? "addresses" : "topology", "x", soon());
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code(), Code::ConfigError);
    EXPECT_THAT(parts.error().message(), AllOf(HasSubstr("(addresses)"), HasSubstr("(topology)")));
    EXPECT_THAT(parts.error().peers(), ElementsAre(0, 1));
  });
}

TEST(Rendezvous, SaysWhatCannotBeReached) {
  UniqueId id;
  {
    const TestServer hosted = start_test_server();
    id = hosted.id;
  }
  const auto rendezvous = meet(id, 4, 3, Deadline::after_ms(300));
  ASSERT_FALSE(rendezvous);
  EXPECT_EQ(rendezvous.error().code(), Code::Timeout);
  EXPECT_EQ(rendezvous.error().message(),
            "rank 3 cannot reach the rendezvous server " + id.endpoint() + ": Connection refused");
}

TEST(Rendezvous, WaitsForAServerThatStartsLater) {
  TestServer hosted = start_test_server();
  const UniqueId id = hosted.id;
  hosted.server.reset();  // now the port is free
  std::latch failed_once(1);
  std::thread server_thread([&] {
    failed_once.wait();
    auto server = RendezvousServer::start({.address = "127.0.0.1",
                                           .port = id.port,
                                           .secret = id.secret,
                                           .communicator = id.communicator,
                                           .life = soon()});
    ASSERT_TRUE(server) << message_of(server);
    EXPECT_TRUE((*server)->wait_until_ended(soon()));
  });
  EXPECT_FALSE(meet(id, 1, 0, Deadline::after_ms(50)));
  failed_once.count_down();
  {
    const auto rendezvous = meet(id, 1, 0, soon());
    EXPECT_TRUE(rendezvous) << message_of(rendezvous);
  }
  server_thread.join();
}

// A bug found: between attempts nobody drove the connection, so that it moved only every 5 s.
TEST(Rendezvous, JoinsAtOnceWhenALateServerStarts) {
  TestServer hosted = start_test_server();
  const UniqueId id = hosted.id;
  hosted.server.reset();
  std::unique_ptr<RendezvousServer> server;
  run_ranks(5, [&](Rank rank) {
    if (rank == 4) {  // not a rank: runs the server, which starts late
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      server = value_of(RendezvousServer::start({.address = "127.0.0.1",
                                                 .port = id.port,
                                                 .secret = id.secret,
                                                 .communicator = id.communicator,
                                                 .life = soon()}));
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto rendezvous = value_of(meet(id, 4, rank, soon()));
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took, std::chrono::seconds(4)) << "rank " << rank;
  });
}

TEST(Rendezvous, FailsFastWhenTheServerExits) {
  TestServer hosted = start_test_server();
  const auto rendezvous = value_of(meet(hosted.id, 2, 0, soon()));
  hosted.server.reset();
  const Deadline deadline = soon();
  const Status failure = error_of(rendezvous->all_gather("addresses", "x", deadline));
  EXPECT_GT(deadline.left_ms(), 10000);
  EXPECT_EQ(failure.code(), Code::RemoteError);
}

TEST(Rendezvous, StopsEveryoneWhenTheServerIsDestroyed) {
  TestServer hosted = start_test_server();
  const auto rendezvous = value_of(meet(hosted.id, 2, 0, soon()));
  std::thread waiting([&] {
    const auto parts = rendezvous->all_gather("addresses", "x", soon());
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code(), Code::RemoteError);
  });
  hosted.server.reset();
  waiting.join();
}

TEST(Rendezvous, EndsWhenItsLifeIsOver) {
  // A loaded machine needs some of it to connect.
  const TestServer hosted = start_test_server(Deadline::after_ms(2000));
  const auto rendezvous = value_of(meet(hosted.id, 2, 0, soon()));
  EXPECT_THAT(error_of(rendezvous->all_gather("addresses", "x", soon())).peers(), ElementsAre(1));
  EXPECT_TRUE(hosted.server->wait_until_ended(soon()));
}

TEST(Rendezvous, LeavesNoPortAndNoThread) {
  const int threads = running_threads();
  TestServer hosted = start_test_server();
  run_ranks(3, [&](Rank rank) {
    const auto rendezvous = value_of(meet(hosted.id, 3, rank, soon()));
    EXPECT_TRUE(rendezvous->all_gather("round", "x", soon()));
  });
  ASSERT_TRUE(hosted.server->wait_until_ended(soon()));
  EXPECT_EQ(PlainProbe(hosted.id, 3, 0).ask(soon()), PlainProbe::Answer::Refused);
  hosted.server.reset();
  // gRPC may hand its last clean-up to a thread that ends by itself, and start one for its timers at any time: what
  // this test has started is gone if there is a moment without it.
  const Deadline deadline = Deadline::after_ms(5000);
  int left = running_threads();
  for (; left > threads && !deadline.passed(); left = running_threads()) std::this_thread::yield();
  EXPECT_LE(left, threads);
}

}  // namespace
}  // namespace ccom
