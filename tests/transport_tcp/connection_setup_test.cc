// SPDX-License-Identifier: Apache-2.0
//
// Who gets in and who does not, over real sockets: strangers of all kinds, wrong keys, other settings, impostors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>

#include "tests/base_network/free_ports.h"
#include "tests/harness/results.h"
#include "tests/harness/threads.h"
#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// More than may be pending at once, so that some wait in the kernel until others were thrown out.
TEST(Strangers, NeitherKeepThePeersAwayNorLearnAnything) {
  const Secret key = Secret::random();
  const auto rank0 = make(config_of(0, key)), rank1 = make(config_of(1, key));
  std::vector<RawSocket> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(RawSocket::to(rank0->address()));
    ASSERT_TRUE(strangers.back().is_open());
    if (i % 4 == 1) strangers.back().write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (i % 4 == 2) strangers.back().write(std::string(500, '\xA5'));
    if (i % 4 == 3) strangers.back().write("O");
  }
  const auto start = Clock::now();
  const auto results = meet(*rank0, *rank1);
  EXPECT_TRUE(results[0].is_ok()) << results[0].message();
  EXPECT_TRUE(results[1].is_ok()) << results[1].message();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  for (const RawSocket& stranger : strangers) {
    std::byte byte;
    EXPECT_EQ(stranger.read({&byte, 1}), 0u);
  }
}

TEST(Strangers, AreDroppedAfterTwoSecondsHoweverBusyTheyLook) {
  const auto rank0 = make(config_of(0, Secret::random()));
  const RawSocket idle = RawSocket::to(rank0->address()), slow = RawSocket::to(rank0->address());
  std::optional<Status> result;
  std::atomic<bool> is_over = false;
  std::thread connecting([&rank0, &result] {
    result = rank0->connect(std::vector<Peer>{{1, "127.0.0.1:9", 1}}, Deadline::after_ms(4500));
  });
  std::thread dripping([&slow, &is_over] {
    while (!is_over && slow.write("x")) std::this_thread::sleep_for(milliseconds(200));
  });
  const auto start = Clock::now();
  std::byte byte;
  EXPECT_EQ(idle.read({&byte, 1}), 0u);
  EXPECT_EQ(slow.read({&byte, 1}), 0u);
  const auto took = Clock::now() - start;
  EXPECT_GT(took, milliseconds(1500));
  EXPECT_LT(took, milliseconds(4300)) << "connect() itself ends after 4500 ms";
  connecting.join();
  is_over = true;
  dripping.join();
  EXPECT_EQ(result->code(), Code::Timeout);
  EXPECT_THAT(result->peers(), ElementsAre(1));
  EXPECT_THAT(result->message(), HasSubstr("2 connections were refused because authentication failed"));
}

TEST(ConnectionSetup, RefusesTheWrongKeyOnBothSides) {
  const auto rank0 = make(config_of(0, Secret::random())), rank1 = make(config_of(1, Secret::random()));
  // Rank 0 is there longer, so that it does refuse rank 1 even on a busy machine.
  const auto results = meet(*rank0, *rank1, milliseconds(2000), milliseconds(1500));
  for (const Rank rank : {0, 1}) {
    const Status& status = results[static_cast<size_t>(rank)];
    EXPECT_EQ(status.code(), Code::Timeout);
    EXPECT_THAT(status.peers(), ElementsAre(1 - rank));
    EXPECT_THAT(status.message(), HasSubstr("rank " + std::to_string(1 - rank) + " at 127.0.0.1:"));
  }
  EXPECT_THAT(results[0].message(), HasSubstr("refused"));
  EXPECT_THAT(results[1].message(), HasSubstr("different key"));
}

TEST(ConnectionSetup, RefusesAnotherCommunicator) {
  const Secret key = Secret::random();
  TcpConfig other = config_of(1, key);
  other.communicator = 4;
  const auto rank0 = make(config_of(0, key)), rank1 = make(other);
  const auto results = meet(*rank0, *rank1, milliseconds(300));
  EXPECT_EQ(results[0].code(), Code::Timeout);
  EXPECT_EQ(results[1].code(), Code::Timeout);
}

void expect_setting_differs(const std::vector<Status>& results, const char* word) {
  for (const Rank rank : {0, 1}) {
    const Status& status = results[static_cast<size_t>(rank)];
    EXPECT_EQ(status.code(), Code::ConfigError) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(word));
    EXPECT_THAT(status.peers(), ElementsAre(1 - rank));
  }
}

TEST(ConnectionSetup, TellsBothSidesWhichSettingDiffers) {
  const Secret key = Secret::random();
  struct Case {
    int streams;
    bool crc;
    int channels;
    const char* word;
  };
  for (const Case& other :
       {Case{1, false, 1, "CCOM_CRC"}, {4, true, 1, "CCOM_TCP_STREAMS"}, {1, true, 3, "channels"}}) {
    const auto rank0 = make(config_of(0, key)), rank1 = make(config_of(1, key, other.streams, other.crc));
    const auto results =
        join_all({{rank0.get(), {{1, rank1->address(), 1}}}, {rank1.get(), {{0, rank0->address(), other.channels}}}});
    expect_setting_differs(results, other.word);
  }
}

// They know from each other's addresses, before either connects.
TEST(ConnectionSetup, TellsBothSidesThatOnlyOneOfThemSpeaksTls) {
  const Secret key = Secret::random();
  TcpConfig with_tls = config_of(1, key);
  with_tls.tls = true;
  const auto rank0 = make(config_of(0, key)), rank1 = make(with_tls);
  const auto start = Clock::now();
  const auto results = meet(*rank0, *rank1);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
  expect_setting_differs(results, "CCOM_TLS");
}

TEST(ConnectionSetup, GoesNoFurtherThanTheHandshakeOfTlsWithTheWrongKey) {
  TcpConfig configs[2] = {config_of(0, Secret::random()), config_of(1, Secret::random())};
  for (TcpConfig& config : configs) config.tls = true;
  const auto rank0 = make(configs[0]), rank1 = make(configs[1]);
  const auto results = meet(*rank0, *rank1, milliseconds(1500), milliseconds(1000));
  EXPECT_EQ(results[0].code(), Code::Timeout);
  EXPECT_EQ(results[1].code(), Code::Timeout);
  EXPECT_THAT(results[0].message(), HasSubstr("refused"));
  EXPECT_THAT(results[1].message(), HasSubstr("TLS: connection closed (different key"));
}

// Greetings and floods of all kinds, at a listener that speaks TLS.
TEST(Strangers, DoNotDisturbAMeetingInsideTls) {
  const Secret key = Secret::random();
  TcpConfig configs[2] = {config_of(0, key), config_of(1, key)};
  for (TcpConfig& config : configs) config.tls = true;
  const auto rank0 = make(configs[0]), rank1 = make(configs[1]);
  std::vector<RawSocket> strangers;
  for (const std::string_view text : {"", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02", "CHLO"}) {
    strangers.push_back(RawSocket::to(rank0->address()));
    ASSERT_TRUE(strangers.back().is_open());
    strangers.back().write(text);
  }
  const auto results = meet(*rank0, *rank1);
  for (const Status& status : results) EXPECT_TRUE(status.is_ok()) << status.message();
}

TEST(ConnectionSetup, WaitsForAPeerThatComesLate) {
  const Secret key = Secret::random();
  const auto rank0 = make(config_of(0, key)), rank1 = make(config_of(1, key));
  std::vector<Status> results(2);
  // Rank 1 has said hello long before rank 0 looks.
  std::thread early([&] {
    results[1] = rank1->connect(std::vector<Peer>{{0, rank0->address(), 1}}, Deadline::after(kPatience));
  });
  std::this_thread::sleep_for(milliseconds(2300));  // longer than a stranger may take
  results[0] = rank0->connect(std::vector<Peer>{{1, rank1->address(), 1}}, Deadline::after(kPatience));
  early.join();
  EXPECT_TRUE(results[0].is_ok()) << results[0].message();
  EXPECT_TRUE(results[1].is_ok()) << results[1].message();
}

// The socket of this process whose name, its own (getsockname) or its peer's (getpeername), is that address; -1: none.
int socket_with(const std::string& address, decltype(&::getsockname) name_of, bool listens) {
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in name{};
    socklen_t size = sizeof name;
    int is_listening = 0;
    socklen_t flag_size = sizeof is_listening;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &flag_size) != 0) continue;
    if ((is_listening != 0) != listens || name_of(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) continue;
    if (name.sin_family == AF_INET && address.ends_with(":" + std::to_string(ntohs(name.sin_port)))) return fd;
  }
  return -1;
}

int listener_at(const std::string& address) { return socket_with(address, &::getsockname, true); }

int connection_to(const std::string& address) { return socket_with(address, &::getpeername, false); }

// Half of all connections lose each repetition of their SYN, or of their Hello: those from a port with one of two bits.
void lose_half_of_the_connections_to(int listener) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),  // source port
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 2, 0, 8),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 6, 0),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 12),  // the header's length in words, in the upper half
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x3c),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, ~uint32_t{0}),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(code)), code};
  const int on = 1;
  ASSERT_EQ(::setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
  ASSERT_EQ(::setsockopt(listener, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof on), 0);  // against our own
}

TEST(ConnectionSetup, TriesAnotherConnectionWhereTheNetworkLosesTheGreeting) {
  const Secret key = Secret::random();
  constexpr int kStreams = 8;
  const auto rank0 = make(config_of(0, key, kStreams)), rank1 = make(config_of(1, key, kStreams));
  lose_half_of_the_connections_to(listener_at(rank0->address()));
  const auto results = meet(*rank0, *rank1, milliseconds(60'000));
  EXPECT_TRUE(results[0].is_ok()) << results[0].message();
  EXPECT_TRUE(results[1].is_ok()) << results[1].message();
}

// 21 of 1,024 connections were missing after a minute: their ranks had lost the processor between connect() and the
// Hello, the kernel had sent a keepalive probe meanwhile, and the listener's kernel took no data after that.
TEST(ConnectionSetup, SendsNoKeepaliveBeforeItsGreeting) {
  const uint16_t port = free_ports(1).low;
  const auto listener = listen_at_port("127.0.0.1", port, 8);
  ASSERT_TRUE(listener.has_value());
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const TcpConfig config = config_of(1, Secret::random());
  const auto rank1 = make(config);
  Status result;
  std::jthread connecting([&] {
    result = rank1->connect(std::vector<Peer>{{0, address, 1}}, Deadline::after_ms(10'000));
  });
  pollfd arrived{.fd = listener->get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&arrived, 1, 5000), 1);
  const RawSocket accepted(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  HandshakeMessage hello;
  ASSERT_EQ(accepted.read(hello.writable_bytes()), sizeof hello);
  int is_on = -1;
  socklen_t size = sizeof is_on;
  ASSERT_EQ(::getsockopt(connection_to(address), SOL_SOCKET, SO_KEEPALIVE, &is_on, &size), 0);
  EXPECT_EQ(is_on, 0) << "before its peer has answered";

  const Secret key = config.key.derive("ccom tcp hello");
  const Identity self{.rank = 0, .communicator = config.communicator, .key = key};
  Handshake acceptor = Handshake::acceptor(handshake_identity(self));
  ASSERT_TRUE(acceptor.receive(hello));
  accepted.write(acceptor.next(terms_of(self, {.peer = 1}, 1)).bytes());
  connecting.join();
  ASSERT_TRUE(result.is_ok()) << result.message();
  ASSERT_EQ(::getsockopt(connection_to(address), SOL_SOCKET, SO_KEEPALIVE, &is_on, &size), 0);
  EXPECT_EQ(is_on, 1);
}

// A connector considers itself admitted once it has sent its Confirm, however late it came to that.
TEST(ConnectionSetup, WaitsForTheConfirmOfASlowPeer) {
  const TcpConfig config = config_of(0, Secret::random());
  const auto rank0 = make(config);
  Status result;
  std::jthread connecting([&] {
    result = rank0->connect(std::vector<Peer>{{1, "127.0.0.1:9", 1}}, Deadline::after(kPatience));
  });
  RawPeer slow(rank0->address(), config);
  std::this_thread::sleep_for(milliseconds(2500));  // a stranger may take two seconds
  EXPECT_TRUE(slow.is_admitted());
  connecting.join();
  EXPECT_TRUE(result.is_ok()) << result.message();
}

TEST(ConnectionSetup, NamesOnlyThePeersThatAreMissing) {
  const Secret key = Secret::random();
  const auto rank0 = make(config_of(0, key)), rank1 = make(config_of(1, key)), rank2 = make(config_of(2, key));
  const std::vector<Peer> all = {{0, rank0->address(), 1}, {1, rank1->address(), 1}, {2, rank2->address(), 1}};
  const auto results = join_all(
      {{rank0.get(), {all[1], all[2]}, milliseconds(400)}, {rank2.get(), {all[0], all[1]}, milliseconds(400)}});
  EXPECT_THAT(results[0].peers(), ElementsAre(1));
  EXPECT_THAT(results[0].message(), HasSubstr("1 of 2 peers missing"));
  EXPECT_THAT(results[1].peers(), ElementsAre(1));
}

TEST(ConnectionSetup, RefusesASecondConnectionForTheSamePlace) {
  const TcpConfig config = config_of(0, Secret::random());
  const auto rank0 = make(config);
  Status result;
  // Rank 2 never comes, so rank 0 keeps listening.
  std::thread connecting([&] {
    result = rank0->connect(std::vector<Peer>{{1, "127.0.0.1:9", 1}, {2, "127.0.0.1:9", 1}}, Deadline::after_ms(700));
  });
  RawPeer first(rank0->address(), config);
  EXPECT_TRUE(first.is_admitted());
  RawPeer second(rank0->address(), config);
  EXPECT_FALSE(second.is_admitted());
  connecting.join();
  EXPECT_THAT(result.peers(), ElementsAre(2)) << "rank 1 is in";
}

bool is_closed(const RawSocket& socket) {
  std::byte byte;
  return socket.read({&byte, 1}) == 0;
}

// Neither a handshake of another protocol under the same key, nor one that was recorded, nor its own Answer.
TEST(ConnectionSetup, RefusesRecordingsReflectionsAndOtherProtocols) {
  const TcpConfig config = config_of(0, Secret::random());
  const auto rank0 = make(config), rank1 = make(config_of(1, config.key));
  const Secret key = config.key.derive("ccom tcp hello");  // part of the protocol
  const Identity self{.rank = 1, .communicator = config.communicator, .key = key};
  const LineTerms terms = terms_of(self, {.peer = 0}, 1);
  std::vector<Status> results;
  std::jthread joining([&] {
    // Rank 1 comes when the strangers have gone.
    const Peer peer{1, rank1->address(), 1};
    results.push_back(rank0->connect(std::span(&peer, 1), Deadline::after(kPatience)));
  });
  const RawSocket control = RawSocket::to(rank0->address());
  control.write(Handshake::connector({HandshakeProtocol::Control, key, config.communicator, 1}, 0).next(terms).bytes());
  EXPECT_TRUE(is_closed(control));

  Handshake recorded = Handshake::connector(handshake_identity(self), 0);
  const HandshakeMessage hello = recorded.next(terms);
  HandshakeMessage answer;
  const RawSocket first = RawSocket::to(rank0->address()), second = RawSocket::to(rank0->address()),
                  other = RawSocket::to(rank0->address());
  first.write(hello.bytes());
  ASSERT_EQ(first.read(answer.writable_bytes()), sizeof answer);
  ASSERT_TRUE(recorded.receive(answer));
  second.write(hello.bytes());
  EXPECT_TRUE(is_closed(second)) << "its Hello has been answered";
  other.write(Handshake::connector(handshake_identity(self), 0).next(terms).bytes());
  ASSERT_EQ(other.read(answer.writable_bytes()), sizeof answer);
  other.write(recorded.next().bytes());
  EXPECT_TRUE(is_closed(other)) << "the Confirm of another conversation";
  const RawSocket third = RawSocket::to(rank0->address());
  third.write(answer.bytes());
  EXPECT_TRUE(is_closed(third)) << "its own Answer";

  const Peer peer{0, rank0->address(), 1};
  EXPECT_TRUE(rank1->connect(std::span(&peer, 1), Deadline::after(kPatience)).is_ok());
  joining.join();
  EXPECT_TRUE(results[0].is_ok()) << results[0].message();
}

TEST(ConnectionSetup, LeavesNoListenerBehindAlsoAfterAnError) {
  const auto rank0 = make(config_of(0, Secret::random()));
  EXPECT_TRUE(RawSocket::to(rank0->address()).is_open());
  EXPECT_FALSE(rank0->connect(std::vector<Peer>{{1, "127.0.0.1:9", 1}}, Deadline::after_ms(50)).is_ok());
  EXPECT_FALSE(RawSocket::to(rank0->address()).is_open());
}

TEST(ConnectionSetup, ChecksItsArguments) {
  const std::vector<std::vector<Peer>> wrong = {{{0, "127.0.0.1:9", 1}},                         // itself
                                                {{1, "127.0.0.1:9", 1}, {1, "127.0.0.1:9", 1}},  // twice
                                                {{1, "127.0.0.1:9", 0}},                         // no channels
                                                {{1, "127.0.0.1:9", kMaxChannels + 1}},          // too many
                                                {{1, "localhost:9", 1}},
                                                {{1, "127.0.0.1", 1}},  // malformed
                                                {{1, "127.0.0.1:0", 1}},
                                                {{1, "::1:9", 1}},
                                                {{1, "[127.0.0.1]:9", 1}},
                                                {{1, "", 1}},
                                                {{1, ":", 1}},
                                                {{1, "[]:9", 1}},
                                                {{1, "127.0.0.1:65536", 1}},
                                                {{1, "127.0.0.1:9x", 1}},
                                                {{1, "127.0.0.1:9,", 1}},
                                                {{1, "127.0.0.1:9  tls", 1}},
                                                {{1, " tls", 1}}};
  for (const auto& peers : wrong) {
    const auto rank0 = make(config_of(0, Secret::random()));
    EXPECT_EQ(rank0->connect(peers, Deadline::after_ms(50)).code(), Code::InvalidArgument) << peers.back().address;
  }
}

TEST(Factory, BindsOneAddressOfThisHostOnly) {
  TcpConfig config = config_of(0, Secret::random());
  for (const char* address : {"0.0.0.0", "::", "", "localhost", "224.0.0.1", "127.0.0.1:80"}) {
    config.bind_addresses = {address};
    EXPECT_EQ(error_of(make_tcp_transport(config)).code(), Code::ConfigError) << address;
  }
  config.bind_addresses = {"203.0.113.77"};  // a documentation address: nobody has it
  EXPECT_EQ(error_of(make_tcp_transport(config)).sys_errno(), EADDRNOTAVAIL);
}

TEST(ConnectionSetup, NeedsAsManyInterfacesOnBothSides) {
  const Secret key = Secret::random();
  TcpConfig two = config_of(1, key);
  two.bind_addresses = {"127.0.0.1", "127.0.0.2"};
  const auto rank0 = make(config_of(0, key)), rank1 = make(two);
  const auto results = meet(*rank0, *rank1);
  for (const Status& status : results) EXPECT_EQ(status.code(), Code::ConfigError) << status.message();
  EXPECT_THAT(results[0].message(), HasSubstr("CCOM_SOCKET_IFNAME: 1 on this rank, 2 on rank 1"));
}

TEST(Factory, ListensWithinTheRangeOfPorts) {
  TcpConfig config = config_of(0, Secret::random());
  config.ports = free_ports(2);
  config.bind_addresses = {"127.0.0.1", "127.0.0.2"};
  const std::string low = std::to_string(config.ports.low), high = std::to_string(config.ports.high);
  const auto first = make(config), second = make(config);
  EXPECT_EQ(first->address(), "127.0.0.1:" + low + ",127.0.0.2:" + low);
  EXPECT_EQ(second->address(), "127.0.0.1:" + high + ",127.0.0.2:" + high);
  const Status third = error_of(make_tcp_transport(config));
  EXPECT_EQ(third.code(), Code::ConfigError);
  EXPECT_THAT(third.message(), HasSubstr("every port of CCOM_PORT_RANGE="));
}

TEST(Factory, ChecksTheNumberOfStreams) {
  for (const int streams : {0, -1, 17}) {
    EXPECT_EQ(error_of(make_tcp_transport(config_of(0, Secret::random(), streams))).code(), Code::ConfigError);
  }
}

}  // namespace
}  // namespace ccom::tcp
