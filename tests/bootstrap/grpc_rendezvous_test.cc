// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous over real gRPC on loopback, ranks as threads: strangers neither get in nor disturb, and who cannot join is
// told why.
#include "bootstrap/grpc_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "base/descriptor.h"
#include "base/openssl.h"
#include "base/tcp_socket.h"
#include "bootstrap/grpc_caller.h"
#include "bootstrap/tls_identity.h"
#include "test_rendezvous.h"

namespace ccom {
namespace {

using namespace ccom::testing;
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

// Else the server could not tell that its process has ended.
TEST(GrpcRendezvous, ARankIsAdmittedOnceItIsPresent) {
  const TestServer hosted = start_test_server();
  GrpcCaller caller(hosted.id, identity_of(2, 1), {});
  ASSERT_TRUE(caller.open().is_ok());
  wire::Request join = caller.identity();
  join.mutable_join();
  EXPECT_FALSE(caller.exchange(join, Deadline::after_ms(300)));
  GrpcCall presence;
  EXPECT_TRUE(caller.exchange(join, soon(), &presence));
  presence.end();
  const auto rank0 = connect_rendezvous(hosted.id, 2, 0, soon());
  ASSERT_FALSE(rank0) << "rank 1's presence has ended, but it has not left";
  expect_named(rank0.error(), 1);
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
