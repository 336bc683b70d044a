// SPDX-License-Identifier: Apache-2.0
//
// The handshake, pure: only a holder of the key who follows this very conversation, in its role, gets on.
#include "base/handshake.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace ccom {
namespace {

const Secret kKey = Secret::from_text("a test's key");
constexpr HandshakeProtocol kProtocols[] = {HandshakeProtocol::Control, HandshakeProtocol::Tcp,
                                            HandshakeProtocol::Ofi,     HandshakeProtocol::Segment,
                                            HandshakeProtocol::Relay,   HandshakeProtocol::Probe};

HandshakeIdentity rank(int32_t self, HandshakeProtocol protocol = HandshakeProtocol::Control,
                       const Secret& key = kKey) {
  return {.protocol = protocol, .key = key, .communicator = 5, .self = self};
}

// As Python's hashlib.scrypt(text, salt=b"ccom job secret 4100", n=16384, r=8, p=1, dklen=32) says.
TEST(Secret, OfAPassphraseIsScrypt) {
  const Secret derived = Secret::from_passphrase("a-secret-of-this-test", "4100");
  std::string hex;
  for (const uint8_t byte : derived.bytes()) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  EXPECT_EQ(hex, "eb0d73f7b0fc80eeca7bd1608f9ec82f200c5c822a33c3b69fe3aa8c4fc119b3");
}

struct Terms {
  uint32_t streams, channels;
  friend bool operator==(const Terms&, const Terms&) = default;
};

// Rank 4 connects to rank 2.
struct Conversation {
  explicit Conversation(HandshakeProtocol protocol = HandshakeProtocol::Control)
      : acceptor(Handshake::acceptor(rank(2, protocol))), connector(Handshake::connector(rank(4, protocol), 2)) {}
  Handshake& speaker() { return connector.is_our_turn() ? connector : acceptor; }
  Handshake& listener() { return connector.is_our_turn() ? acceptor : connector; }
  // All messages, or the first `most`.
  std::vector<HandshakeMessage> talk(size_t most = 4) {
    std::vector<HandshakeMessage> said;
    while (!connector.is_complete() && said.size() < most) {
      Handshake &from = speaker(), &to = listener();
      said.push_back(from.next(Terms{7, static_cast<uint32_t>(said.size())}));
      EXPECT_TRUE(to.receive(said.back())) << said.size();
    }
    return said;
  }
  Handshake acceptor, connector;
};

bool same(const Secret& a, const Secret& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

TEST(Handshake, AdmitsHoldersOfTheKeyAndAgreesOnAFreshSession) {
  for (const HandshakeProtocol protocol : kProtocols) {
    Conversation one(protocol), other(protocol);
    const auto said = one.talk();
    const bool has_welcome = protocol == HandshakeProtocol::Control || protocol == HandshakeProtocol::Segment;
    EXPECT_EQ(said.size(), has_welcome ? 4u : protocol == HandshakeProtocol::Probe ? 2u : 3u);
    EXPECT_TRUE(one.acceptor.is_complete() && one.connector.is_complete());
    EXPECT_EQ(one.acceptor.peer(), 4);
    EXPECT_EQ(said[1].terms_as<Terms>(), (Terms{7, 1}));
    EXPECT_TRUE(same(one.acceptor.session(), one.connector.session()));
    (void)other.talk();
    EXPECT_FALSE(same(one.acceptor.session(), other.acceptor.session()));
  }
}

TEST(Handshake, TheSessionIsKnownFromTheAnswerOn) {
  Conversation talk;
  (void)talk.talk(2);
  const Secret early = talk.connector.session();
  EXPECT_TRUE(same(early, talk.acceptor.session()));
  while (!talk.connector.is_complete()) {
    Handshake &from = talk.speaker(), &to = talk.listener();
    ASSERT_TRUE(to.receive(from.next()));
  }
  EXPECT_TRUE(same(early, talk.connector.session()));
}

TEST(Handshake, RefusesAnotherKey) {
  const Secret other = Secret::from_text("another key");
  Handshake stranger = Handshake::connector(rank(4, HandshakeProtocol::Control, other), 2);
  Handshake acceptor = Handshake::acceptor(rank(2));
  EXPECT_FALSE(acceptor.receive(stranger.next()));
  EXPECT_FALSE(acceptor.is_our_turn()) << "a stranger gets no answer";

  // One who answers whatever comes.
  Conversation false_acceptor(HandshakeProtocol::Tcp);
  const HandshakeMessage hello = false_acceptor.connector.next();
  Handshake impostor = Handshake::acceptor(rank(2, HandshakeProtocol::Tcp, other));
  Handshake accomplice = Handshake::connector(rank(4, HandshakeProtocol::Tcp, other), 2);
  ASSERT_TRUE(impostor.receive(accomplice.next()));
  EXPECT_FALSE(false_acceptor.connector.receive(impostor.next()));
  (void)hello;
}

TEST(Handshake, NoticesEveryDamagedBitOfEveryMessage) {
  for (size_t position = 0; position < 4; ++position) {
    Conversation talk;
    (void)talk.talk(position);
    Handshake &from = talk.speaker(), &to = talk.listener();
    const HandshakeMessage sent = from.next();
    for (size_t bit = 0; bit < 8 * sizeof(HandshakeMessage); ++bit) {
      HandshakeMessage damaged = sent;
      damaged.writable_bytes()[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(to.receive(damaged)) << "message " << position << ", bit " << bit;
    }
    EXPECT_TRUE(to.receive(sent)) << "what was refused before has changed nothing";
  }
}

TEST(Handshake, RefusesWhatIsTooShortOrTooLong) {
  Conversation talk;
  const HandshakeMessage hello = talk.connector.next();
  std::vector<std::byte> bytes(hello.bytes().begin(), hello.bytes().end());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(talk.acceptor.receive(ConstBytes(bytes).first(size)));
  bytes.push_back({});
  EXPECT_FALSE(talk.acceptor.receive(bytes));
  EXPECT_TRUE(talk.acceptor.receive(hello.bytes()));
}

// Who has recorded a conversation can repeat the Hello, but has no Confirm for the fresh Answer; nor an Answer for a
// fresh Hello.
TEST(Handshake, RefusesARecording) {
  const auto recorded = Conversation().talk();
  Handshake acceptor = Handshake::acceptor(rank(2));
  ASSERT_TRUE(acceptor.receive(recorded[0]));
  (void)acceptor.next();
  for (const HandshakeMessage& message : recorded) EXPECT_FALSE(acceptor.receive(message));
  Handshake connector = Handshake::connector(rank(4), 2);
  (void)connector.next();
  for (const HandshakeMessage& message : recorded) EXPECT_FALSE(connector.receive(message));
  Conversation late;
  (void)late.talk(3);
  (void)late.acceptor.next();
  EXPECT_FALSE(late.connector.receive(recorded[3]));
}

TEST(Handshake, AnswersAHelloOnce) {
  HelloNumbers answered;
  Handshake connector = Handshake::connector(rank(4), 2), again = Handshake::connector(rank(4), 2);
  const HandshakeMessage hello = connector.next();
  HandshakeMessage damaged = hello;
  damaged.mac[0] ^= 1;
  EXPECT_FALSE(Handshake::acceptor(rank(2), &answered).receive(damaged));
  EXPECT_TRUE(answered.empty()) << "of strangers nothing is kept";
  EXPECT_TRUE(Handshake::acceptor(rank(2), &answered).receive(hello));
  EXPECT_FALSE(Handshake::acceptor(rank(2), &answered).receive(hello));
  EXPECT_TRUE(Handshake::acceptor(rank(2), &answered).receive(again.next())) << "the same peer on another connection";
}

// Our own messages, sent back: to the side that has sent them, and to an acceptor of the same rank.
TEST(Handshake, RefusesAReflection) {
  for (size_t position = 0; position < 4; ++position) {
    Conversation talk;
    (void)talk.talk(position);
    Handshake& from = talk.speaker();
    const HandshakeMessage sent = from.next();
    EXPECT_FALSE(from.receive(sent)) << position;
    Handshake own_acceptor = Handshake::acceptor(rank(sent.from));
    EXPECT_FALSE(own_acceptor.receive(sent)) << position;
  }
}

// An attacker between two ranks that both connect answers each with what the other says.
TEST(Handshake, RefusesSwappedRoles) {
  Handshake one = Handshake::connector(rank(4), 2), other = Handshake::connector(rank(2), 4);
  const HandshakeMessage from_one = one.next(), from_other = other.next();
  EXPECT_FALSE(one.receive(from_other));
  EXPECT_FALSE(other.receive(from_one));
  HandshakeMessage relabelled = from_other;
  relabelled.step = HandshakeStep::Answer;
  EXPECT_FALSE(one.receive(relabelled));
  const auto said = Conversation().talk();
  Handshake acceptor = Handshake::acceptor(rank(4));  // an Answer is addressed to rank 4, but is no Hello
  relabelled = said[1];
  relabelled.step = HandshakeStep::Hello;
  EXPECT_FALSE(acceptor.receive(said[1]));
  EXPECT_FALSE(acceptor.receive(relabelled));
}

TEST(Handshake, RefusesAnotherProtocolsTranscript) {
  for (const HandshakeProtocol theirs : kProtocols) {
    for (const HandshakeProtocol ours : kProtocols) {
      if (ours == theirs) continue;
      const auto said = Conversation(theirs).talk();
      Handshake acceptor = Handshake::acceptor(rank(2, ours));
      HandshakeMessage hello = said[0];
      EXPECT_FALSE(acceptor.receive(hello));
      hello.protocol = ours;
      EXPECT_FALSE(acceptor.receive(hello)) << "the same key, but the HMAC covers the protocol";
    }
  }
}

TEST(Handshake, RefusesAnotherChannelCommunicatorOrRank) {
  HandshakeIdentity here = rank(2), there = rank(4);
  here.channel = "/run/a";
  there.channel = "/run/b";
  EXPECT_FALSE(Handshake::acceptor(here).receive(Handshake::connector(there, 2).next()));
  there.channel = here.channel;
  EXPECT_TRUE(Handshake::acceptor(here).receive(Handshake::connector(there, 2).next()));
  EXPECT_FALSE(Handshake::acceptor(here).receive(Handshake::connector(there, 3).next()));
  there.communicator = 6;
  EXPECT_FALSE(Handshake::acceptor(here).receive(Handshake::connector(there, 2).next()));
}

// Rank 3 holds the key too, but does not get into the conversation of ranks 4 and 2.
TEST(Handshake, RefusesAThirdRankWithinAConversation) {
  Handshake acceptor = Handshake::acceptor(rank(2));
  Handshake connector = Handshake::connector(rank(4), 2), third = Handshake::connector(rank(3), 2);
  ASSERT_TRUE(acceptor.receive(connector.next()));
  (void)third.next();
  const HandshakeMessage answer = acceptor.next();
  EXPECT_FALSE(third.receive(answer));
  ASSERT_TRUE(connector.receive(answer));
  HandshakeMessage confirm = connector.next();
  confirm.from = 3;
  EXPECT_FALSE(acceptor.receive(confirm));
}

}  // namespace
}  // namespace ccom
