// SPDX-License-Identifier: Apache-2.0
//
// Probes without TLS: what the server says to whom, and what a rank believes.
#include "bootstrap/plain_probe.h"

#include <fstream>
#include <sstream>

#include "base/tcp_socket.h"
#include "bootstrap/url.h"
#include "test_rendezvous.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using Answer = PlainProbe::Answer;

TEST(PlainProbe, HearsWhetherTheServerWouldAdmitTheRank) {
  const TestServer hosted = start_test_server();
  EXPECT_EQ(PlainProbe(hosted.id, 2, 1).ask(soon()), Answer::Admits);
  EXPECT_EQ(PlainProbe(hosted.id, 3, 1).ask(soon()), Answer::Admits) << "who asks has not joined";
  const auto rank1 = value_of(connect_rendezvous(hosted.id, 2, 1, soon()));
  EXPECT_EQ(PlainProbe(hosted.id, 2, 0).ask(soon()), Answer::Admits);
  EXPECT_EQ(PlainProbe(hosted.id, 2, 1).ask(soon()), Answer::Unknown) << "another process has that rank";
  EXPECT_EQ(PlainProbe(hosted.id, 3, 0).ask(soon()), Answer::Unknown) << "another number of ranks";
  const auto rank0 = connect_rendezvous(hosted.id, 2, 0, soon());
  EXPECT_TRUE(rank0) << "probes have not ended the rendezvous: " << message_of(rank0);
}

TEST(PlainProbe, HearsNothingFromAServerOfAnotherSecretOrNobody) {
  TestServer hosted = start_test_server();
  UniqueId wrong = hosted.id;
  wrong.secret = Secret::random();
  EXPECT_EQ(PlainProbe(wrong, 2, 1).ask(soon()), Answer::Unknown);
  hosted.server.reset();
  EXPECT_EQ(PlainProbe(hosted.id, 2, 1).ask(soon()), Answer::Refused);
}

TEST(PlainProbe, ContinuesWhereItWas) {
  const Result<Descriptor> listener = listen_at_port("127.0.0.1", 0, 1);
  ASSERT_TRUE(listener);
  const UniqueId id{.address = "127.0.0.1", .port = port_of(*listener), .secret = Secret::random()};
  PlainProbe probe(id, 2, 1);
  EXPECT_EQ(probe.ask(Deadline::after_ms(20)), Answer::Pending);
  const Descriptor there(::accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  HandshakeMessage hello;
  ASSERT_EQ(::recv(there.get(), &hello, sizeof hello, 0), ssize_t{sizeof hello});
  const auto answer =
      PlainAnswers(id.secret, [](Rank rank, int nranks) { return rank == 1 && nranks == 2; }).answer(hello);
  ASSERT_TRUE(answer);
  const auto say = [&](size_t from, size_t to) {
    const ConstBytes part = answer->bytes().subspan(from, to - from);
    EXPECT_EQ(::send(there.get(), part.data(), part.size(), MSG_NOSIGNAL), static_cast<ssize_t>(part.size()));
  };
  say(0, 100);
  EXPECT_EQ(probe.ask(Deadline::after_ms(20)), Answer::Pending);
  say(100, sizeof *answer);
  EXPECT_EQ(probe.ask(soon()), Answer::Admits);
}

// A yes to one rank is none to another, and none to the same rank later.
TEST(PlainProbe, DoesNotBelieveARecordedAnswer) {
  const TestServer hosted = start_test_server();
  const PlainAnswers answers(hosted.id.secret, [](Rank, int) { return true; });
  const Result<Descriptor> listener = listen_at_port("127.0.0.1", 0, 4);
  ASSERT_TRUE(listener);
  UniqueId id = hosted.id;
  id.port = port_of(*listener);
  std::optional<HandshakeMessage> recorded;
  for (const Answer expected : {Answer::Admits, Answer::Unknown}) {
    PlainProbe probe(id, 2, 1);
    EXPECT_EQ(probe.ask(Deadline::after_ms(20)), Answer::Pending);
    const Descriptor there(::accept4(listener->get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    HandshakeMessage hello;
    ASSERT_EQ(::recv(there.get(), &hello, sizeof hello, 0), ssize_t{sizeof hello});
    if (!recorded) recorded = answers.answer(hello);
    ASSERT_TRUE(recorded);
    ASSERT_EQ(::send(there.get(), &*recorded, sizeof *recorded, MSG_NOSIGNAL), ssize_t{sizeof *recorded});
    EXPECT_EQ(probe.ask(soon()), expected);
  }
}

}  // namespace
}  // namespace ccom
