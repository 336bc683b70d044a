// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous over real gRPC on loopback, ranks as threads: it gathers, it names who is missing or wrong, strangers
// neither get in nor disturb, and nothing is left afterwards.
#include "bootstrap/grpc_client.h"
#include "bootstrap/grpc_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <latch>
#include <memory>

#include "base/descriptor.h"
#include "base/openssl.h"
#include "base/tcp_socket.h"
#include "bootstrap/tls_identity.h"
#include "test_rendezvous.h"
#include "tests/harness/resources.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Descriptor connect_to(uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return Descriptor();
  return socket;
}

class GrpcRendezvousOf : public ::testing::TestWithParam<int> {};

TEST_P(GrpcRendezvousOf, GathersSeveralRounds) {
  const int nranks = GetParam();
  const TestServer hosted = start_test_server();
  run_ranks(nranks, [&](Rank rank) {
    const auto rendezvous = value_of(connect_rendezvous(hosted.id, nranks, rank, soon()));
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
INSTANTIATE_TEST_SUITE_P(Ranks, GrpcRendezvousOf, ::testing::Values(1, 2, 5, 16));

TEST(GrpcRendezvous, CarriesTheLargestPartAndRefusesALargerOne) {
  constexpr size_t kMebibyte = size_t{1} << 20;
  const TestServer hosted = start_test_server();
  run_ranks(3, [&](Rank rank) {
    const auto rendezvous = value_of(connect_rendezvous(hosted.id, 3, rank, soon()));
    const auto too_large = rendezvous->all_gather("large", std::string(kMebibyte + 1, 'x'), soon());
    EXPECT_THAT(message_of(too_large), HasSubstr("1048577"));
    const auto parts =
        value_of(rendezvous->all_gather("large", std::string(kMebibyte, static_cast<char>('a' + rank)), soon()));
    for (size_t of = 0; of < 3; ++of) EXPECT_EQ(parts[of], std::string(kMebibyte, static_cast<char>('a' + of)));
  });
}

TEST(GrpcRendezvous, TellsRanksThatNeverCameFromThoseThatAreLate) {
  const TestServer hosted = start_test_server();
  const auto late = value_of(connect_rendezvous(hosted.id, 4, 3, soon()));
  run_ranks(2, [&](Rank rank) {
    const auto rendezvous = value_of(connect_rendezvous(hosted.id, 4, rank, soon()));
    const Deadline deadline = Deadline::after_ms(800);
    const Status failure = error_of(rendezvous->all_gather("addresses", "x", deadline));
    EXPECT_FALSE(deadline.passed());
    EXPECT_EQ(failure.code(), Code::Timeout);
    EXPECT_THAT(failure.message(), HasSubstr("ranks 2 and 3 of 4 (rank 2 never joined)"));
    EXPECT_THAT(failure.peers(), ElementsAre(2, 3));
  });
}

TEST(GrpcRendezvous, TellsALateRankWhyTheOthersGaveUp) {
  const TestServer hosted = start_test_server();
  const auto early = value_of(connect_rendezvous(hosted.id, 2, 0, soon()));
  const Status failure = error_of(early->all_gather("addresses", "x", Deadline::after_ms(2000)));
  const auto late = connect_rendezvous(hosted.id, 2, 1, soon());
  EXPECT_EQ(message_of(late), failure.message());
}

TEST(GrpcRendezvous, EndsEveryWaitWhenARankLeaves) {
  const TestServer hosted = start_test_server();
  std::latch both_in(2);
  run_ranks(2, [&](Rank rank) {
    auto rendezvous = value_of(connect_rendezvous(hosted.id, 2, rank, soon()));
    both_in.arrive_and_wait();
    if (rank == 1) return;
    const Status failure = error_of(rendezvous->all_gather("addresses", "x", soon()));
    EXPECT_EQ(failure.code(), Code::RemoteError);
    EXPECT_THAT(failure.message(), HasSubstr("rank 1"));
    EXPECT_THAT(failure.peers(), ElementsAre(1));
  });
}

TEST(GrpcRendezvous, RefusesAnotherNumberOfRanks) {
  const TestServer hosted = start_test_server();
  const auto first = value_of(connect_rendezvous(hosted.id, 4, 0, soon()));
  const Status second = error_of(connect_rendezvous(hosted.id, 8, 5, soon()));
  EXPECT_EQ(second.code(), Code::ConfigError);
  EXPECT_THAT(second.message(), AllOf(HasSubstr("rank 5"), HasSubstr("8 ranks"), HasSubstr("rank 0"), HasSubstr("4")));
  EXPECT_THAT(second.peers(), ElementsAre(0, 5));
  const auto told_too = first->all_gather("addresses", "x", soon());
  EXPECT_EQ(message_of(told_too), second.message());
}

TEST(GrpcRendezvous, RefusesARankThatCameAlready) {
  const TestServer hosted = start_test_server();
  const auto first = value_of(connect_rendezvous(hosted.id, 4, 3, soon()));
  const Status second = error_of(connect_rendezvous(hosted.id, 4, 3, soon()));
  EXPECT_EQ(second.code(), Code::ConfigError);
  EXPECT_THAT(second.message(), HasSubstr("rank 3 joined twice: process"));
  EXPECT_THAT(second.peers(), ElementsAre(3));
}

TEST(GrpcRendezvous, RefusesRanksAtDifferentExchanges) {
  const TestServer hosted = start_test_server();
  run_ranks(2, [&](Rank rank) {
    const auto rendezvous = value_of(connect_rendezvous(hosted.id, 2, rank, soon()));
    const auto parts = rendezvous->all_gather(rank == 0 ? "addresses" : "topology", "x", soon());
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code(), Code::ConfigError);
    EXPECT_THAT(parts.error().message(), AllOf(HasSubstr("(addresses)"), HasSubstr("(topology)")));
    EXPECT_THAT(parts.error().peers(), ElementsAre(0, 1));
  });
}

TEST(GrpcRendezvous, LetsNobodyInWithoutTheSecret) {
  const TestServer hosted = start_test_server();
  UniqueId wrong = hosted.id;
  wrong.secret = Secret::random();
  const Status stranger = error_of(connect_rendezvous(wrong, 1, 0, soon()));
  EXPECT_EQ(stranger.code(), Code::ConfigError);
  EXPECT_THAT(stranger.message(), HasSubstr("secret"));
  EXPECT_FALSE(RendezvousProbe(1, 0).ask(wrong, Deadline::after_ms(300)).is_ok());
  const auto member = connect_rendezvous(hosted.id, 1, 0, soon());
  EXPECT_TRUE(member) << message_of(member);
}

// TLS with that name, as the server wants it, with that certificate, and without a look at the server's; whether the
// server says anything then.
bool is_answered(const UniqueId& id, const std::string& name, const TlsIdentity& own) {
  const std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>> context(SSL_CTX_new(TLS_client_method()));
  const auto read = [](const std::string& text, auto parse) {
    const std::unique_ptr<BIO, OpensslFree<BIO_free_all>> source(
        BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    return parse(source.get(), nullptr, nullptr, nullptr);
  };
  const std::unique_ptr<X509, OpensslFree<X509_free>> certificate(read(own.certificate, PEM_read_bio_X509));
  const std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>> key(read(own.key, PEM_read_bio_PrivateKey));
  SSL_CTX_use_certificate(context.get(), certificate.get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  const std::unique_ptr<SSL, OpensslFree<SSL_free>> tls(SSL_new(context.get()));
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_tlsext_host_name(tls.get(), name.c_str());
  SSL_set_alpn_protos(tls.get(), kHttp2, sizeof kHttp2);
  const Descriptor socket = connect_to(id.port);
  const timeval patience{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  SSL_set_fd(tls.get(), socket.get());
  std::array<char, 64> bytes{};
  return SSL_connect(tls.get()) == 1 && SSL_read(tls.get(), bytes.data(), bytes.size()) > 0;
}

// The name is in the clear on the network.
TEST(GrpcRendezvous, LetsNobodyInByTheNameAlone) {
  const TestServer hosted = start_test_server();
  const TlsIdentity right = make_tls_identity(hosted.id.secret).value();
  const TlsIdentity other = make_tls_identity(Secret::random()).value();
  EXPECT_TRUE(is_answered(hosted.id, right.name, right));
  EXPECT_FALSE(is_answered(hosted.id, right.name, other));
}

// A port is soon another program's: rank 0 has ended, whose id was read after its server had answered.
TEST(GrpcRendezvous, BlamesRank0IfAnotherProgramListensWhereItsServerWas) {
  const TestServer other = start_test_server();
  UniqueId of_ended = other.id;
  of_ended.secret = Secret::random();
  of_ended.rank0_made = true;
  const Status late = error_of(connect_rendezvous(of_ended, 4, 3, soon()));
  EXPECT_EQ(late.code(), Code::RemoteError) << late.message();
  EXPECT_THAT(late.peers(), ElementsAre(0));
  EXPECT_THAT(late.message(), HasSubstr("another program listens there now"));
}

// Another one takes both sides another handshake, and gRPC may keep the socket of one that is given up.
TEST(GrpcRendezvous, ContinuesAnAttemptToConnectWhenTheSameIdIsAskedAbout) {
  const Result<Descriptor> listener = listen_at_port("127.0.0.1", 0, 16);
  ASSERT_TRUE(listener);
  UniqueId id;
  id.address = "127.0.0.1";
  id.port = port_of(*listener);
  id.communicator = 1;
  RendezvousProbe probe(2, 1);
  for (int i = 0; i < 12; ++i) EXPECT_FALSE(probe.ask(id, Deadline::after_ms(200)).is_ok());
  int connections = 0;
  while (Descriptor(::accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK)).is_open()) ++connections;
  EXPECT_EQ(connections, 2) << "one asks in plain words, for two seconds, and one over gRPC";
}

TEST(GrpcRendezvous, SaysWhatCannotBeReached) {
  UniqueId id;
  {
    const TestServer hosted = start_test_server();
    id = hosted.id;
  }
  const auto rendezvous = connect_rendezvous(id, 4, 3, Deadline::after_ms(300));
  ASSERT_FALSE(rendezvous);
  EXPECT_EQ(rendezvous.error().code(), Code::Timeout);
  EXPECT_EQ(rendezvous.error().message(),
            "rank 3 cannot reach the rendezvous server " + id.endpoint() + ": Connection refused");
}

TEST(GrpcRendezvous, WaitsForAServerThatStartsLater) {
  TestServer hosted = start_test_server();
  const UniqueId id = hosted.id;
  hosted.server.reset();  // now the port is free
  std::latch failed_once(1);
  std::thread server_thread([&] {
    failed_once.wait();
    auto server =
        RendezvousServer::start({.address = "127.0.0.1", .port = id.port, .secret = id.secret, .life = soon()});
    ASSERT_TRUE(server) << message_of(server);
    EXPECT_TRUE((*server)->wait_until_ended(soon()));
  });
  EXPECT_FALSE(connect_rendezvous(id, 1, 0, Deadline::after_ms(50)));
  failed_once.count_down();
  {
    const auto rendezvous = connect_rendezvous(id, 1, 0, soon());
    EXPECT_TRUE(rendezvous) << message_of(rendezvous);
  }
  server_thread.join();
}

// A bug found: between attempts nobody drove the connection, so that it moved only every 5 s.
TEST(GrpcRendezvous, JoinsAtOnceWhenALateServerStarts) {
  TestServer hosted = start_test_server();
  const UniqueId id = hosted.id;
  hosted.server.reset();
  std::unique_ptr<RendezvousServer> server;
  run_ranks(5, [&](Rank rank) {
    if (rank == 4) {  // not a rank: runs the server, which starts late
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      server = value_of(
          RendezvousServer::start({.address = "127.0.0.1", .port = id.port, .secret = id.secret, .life = soon()}));
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto rendezvous = value_of(connect_rendezvous(id, 4, rank, soon()));
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_LT(took, std::chrono::seconds(4)) << "rank " << rank;
  });
}

TEST(GrpcRendezvous, FailsFastWhenTheServerExits) {
  TestServer hosted = start_test_server();
  const auto rendezvous = value_of(connect_rendezvous(hosted.id, 2, 0, soon()));
  hosted.server.reset();
  const Deadline deadline = soon();
  const Status failure = error_of(rendezvous->all_gather("addresses", "x", deadline));
  EXPECT_GT(deadline.left_ms(), 10000);
  EXPECT_EQ(failure.code(), Code::RemoteError);
}

TEST(GrpcRendezvous, StopsEveryoneWhenTheServerIsDestroyed) {
  TestServer hosted = start_test_server();
  const auto rendezvous = value_of(connect_rendezvous(hosted.id, 2, 0, soon()));
  std::thread waiting([&] {
    const auto parts = rendezvous->all_gather("addresses", "x", soon());
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code(), Code::RemoteError);
  });
  hosted.server.reset();
  waiting.join();
}

TEST(GrpcRendezvous, EndsWhenItsLifeIsOver) {
  // A loaded machine needs some of it to connect.
  const TestServer hosted = start_test_server(Deadline::after_ms(2000));
  const auto rendezvous = value_of(connect_rendezvous(hosted.id, 2, 0, soon()));
  EXPECT_THAT(error_of(rendezvous->all_gather("addresses", "x", soon())).peers(), ElementsAre(1));
  EXPECT_TRUE(hosted.server->wait_until_ended(soon()));
}

TEST(GrpcRendezvous, IsNotDisturbedByStrangers) {
  const TestServer hosted = start_test_server();
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(connect_to(hosted.id.port));
    ASSERT_TRUE(strangers.back().is_open());
    const std::string_view hello = i % 4 == 0   ? ""  // says nothing
                                   : i % 4 == 1 ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                                   : i % 4 == 2 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                                : "\x16\x03\x01\xff\xff\x01";  // half a TLS greeting
    EXPECT_EQ(::send(strangers.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
  }
  run_ranks(4, [&](Rank rank) {
    const auto rendezvous = value_of(connect_rendezvous(hosted.id, 4, rank, soon()));
    for (int round = 0; round < 3; ++round) EXPECT_TRUE(rendezvous->all_gather("round", "x", soon()));
  });
  EXPECT_TRUE(hosted.server->wait_until_ended(soon()));
}

// A plain HTTP/2 client gets its connection closed and not one byte of HTTP/2.
TEST(GrpcRendezvous, NeverSpeaksPlainText) {
  const TestServer hosted = start_test_server();
  const Descriptor stranger = connect_to(hosted.id.port);
  const std::string_view hello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  ASSERT_EQ(::send(stranger.get(), hello.data(), hello.size(), MSG_NOSIGNAL), static_cast<ssize_t>(hello.size()));
  std::string answer;
  char buffer[256];
  pollfd ready{.fd = stranger.get(), .events = POLLIN, .revents = 0};
  while (::poll(&ready, 1, 10000) == 1) {
    const ssize_t got = ::recv(stranger.get(), buffer, sizeof buffer, 0);
    if (got <= 0) break;
    answer.append(buffer, static_cast<size_t>(got));
  }
  // At most a TLS alert (record type 21).
  EXPECT_TRUE(answer.empty() || answer[0] == 21) << answer;
}

TEST(GrpcRendezvous, LeavesNoPortAndNoThread) {
  const int threads = running_threads();
  TestServer hosted = start_test_server();
  run_ranks(3, [&](Rank rank) {
    const auto rendezvous = value_of(connect_rendezvous(hosted.id, 3, rank, soon()));
    EXPECT_TRUE(rendezvous->all_gather("round", "x", soon()));
  });
  ASSERT_TRUE(hosted.server->wait_until_ended(soon()));
  EXPECT_FALSE(connect_to(hosted.id.port).is_open());
  hosted.server.reset();
  // gRPC may hand its last clean-up to a thread that ends by itself, and start one for its timers at any time: what
  // this test has started is gone if there is a moment without it.
  const Deadline deadline = Deadline::after_ms(5000);
  int left = running_threads();
  for (; left > threads && !deadline.passed(); left = running_threads()) std::this_thread::yield();
  EXPECT_LE(left, threads);
}

TEST(GrpcRendezvous, IgnoresProxies) {
  const ScopedVariable http("http_proxy", "http://127.0.0.1:1");
  const ScopedVariable https("https_proxy", "http://127.0.0.1:1");
  const ScopedVariable grpc("grpc_proxy", "http://127.0.0.1:1");
  const TestServer hosted = start_test_server();
  const auto rendezvous = connect_rendezvous(hosted.id, 1, 0, soon());
  EXPECT_TRUE(rendezvous) << message_of(rendezvous);
}

TEST(GrpcRendezvous, NeverListensEverywhere) {
  for (const char* address : {"0.0.0.0", "::", "::ffff:0.0.0.0"}) {
    const Status failure =
        error_of(RendezvousServer::start({.address = address, .secret = Secret::random(), .life = soon()}));
    EXPECT_EQ(failure.code(), Code::ConfigError);
  }
}

TEST(GrpcRendezvous, SaysWhyThePortCannotBeHad) {
  const TestServer hosted = start_test_server();
  const Status taken = error_of(RendezvousServer::start(
      {.address = "127.0.0.1", .port = hosted.id.port, .secret = Secret::random(), .life = soon()}));
  EXPECT_EQ(taken.sys_errno(), EADDRINUSE);
  const Status foreign =
      error_of(RendezvousServer::start({.address = "192.0.2.1", .secret = Secret::random(), .life = soon()}));
  EXPECT_EQ(foreign.sys_errno(), EADDRNOTAVAIL);
  EXPECT_THAT(foreign.message(), HasSubstr("192.0.2.1"));
}

TEST(GrpcRendezvous, WorksOverIPv6) {
  const UniqueId id{.address = "::1", .secret = Secret::random()};
  const auto server = RendezvousServer::start({.address = id.address, .secret = id.secret, .life = soon()});
  if (!server) GTEST_SKIP() << "no IPv6 loopback here: " << message_of(server);
  UniqueId there = id;
  there.port = (*server)->port();
  const auto rendezvous = connect_rendezvous(there, 1, 0, soon());
  EXPECT_TRUE(rendezvous) << message_of(rendezvous);
}

}  // namespace
}  // namespace ccom
