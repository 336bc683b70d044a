// SPDX-License-Identifier: Apache-2.0
//
// Streams inside one control connection: what is said in one, or ends it, is none of the others' business.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "liveness/control_family.h"
#include "liveness/control_link.h"

namespace ccom {
namespace {

using ::testing::HasSubstr;

constexpr StreamId kFirst{1, 0}, kSecond{1, 3}, kOther{2, 0};

Status say(std::string text) { return {Code::Aborted, std::move(text)}; }

struct Connections {
  Connections() {
    int fds[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    const Secret up = Secret::random(), down = Secret::random();
    ours = std::make_shared<ControlConnection>(ControlSocket(Descriptor(fds[0])), ConnectionTerms{up, down, 7});
    theirs = std::make_shared<ControlConnection>(ControlSocket(Descriptor(fds[1])), ConnectionTerms{down, up, 7});
  }
  std::unique_ptr<ControlLink> open(const StreamId& id) const {
    return std::make_unique<ControlLink>(ours, id, nullptr);
  }
  std::unique_ptr<ControlLink> open_there(const StreamId& id) const {
    return std::make_unique<ControlLink>(theirs, id, nullptr);
  }
  void move() const {
    for (const auto& each : {ours, theirs}) each->poll(0);
    ours->receive();
    theirs->receive();
  }
  std::shared_ptr<ControlConnection> ours, theirs;
};

std::vector<std::string> texts(ControlLink& link) {
  std::vector<ControlMessage> messages;
  link.receive(messages);
  std::vector<std::string> all;
  for (const ControlMessage& message : messages)
    all.push_back(message.type == MessageType::Error ? message.error.message() : "-");
  return all;
}

using Texts = std::vector<std::string>;

TEST(ControlStreams, KeepTheirMessagesApart) {
  const Connections pair;
  const auto first = pair.open(kFirst), second = pair.open(kSecond), other = pair.open(kOther);
  const auto first_there = pair.open_there(kFirst), second_there = pair.open_there(kSecond),
             other_there = pair.open_there(kOther);
  second->send({MessageType::Error, say("second")});
  first->send({MessageType::Error, say("first")});
  other->send({MessageType::Error, say("other")});
  first->send({MessageType::Error, say("again")});
  first_there->send({MessageType::Error, say("back")});
  pair.move();
  EXPECT_EQ(texts(*first_there), (Texts{"first", "again"}));
  EXPECT_EQ(texts(*second_there), Texts{"second"});
  EXPECT_EQ(texts(*other_there), Texts{"other"});
  EXPECT_EQ(texts(*first), Texts{"back"});
  EXPECT_EQ(texts(*second), Texts{});
}

TEST(ControlStreams, KeepWhatComesBeforeItIsReceivedAndDropWhatIsForNobody) {
  const Connections pair;
  const auto first = pair.open(kFirst), second = pair.open(kSecond);
  second->send({MessageType::Error, say("to nobody")});
  const auto first_there = pair.open_there(kFirst);
  for (int i = 0; i < 100; ++i) first->send({MessageType::Heartbeat});
  first->send({MessageType::Error, say("early")});
  pair.move();
  const auto second_there = pair.open_there(kSecond);
  second->send({MessageType::Error, say("to somebody")});
  pair.move();
  EXPECT_EQ(texts(*first_there), (Texts{"-", "early"})) << "heartbeats are kept once";
  EXPECT_EQ(texts(*second_there), Texts{"to somebody"});
}

TEST(ControlStreams, EndAloneByAGoodbyeOrWithoutOne) {
  const Connections pair;
  auto first = pair.open(kFirst), second = pair.open(kSecond);
  const auto other = pair.open(kOther);
  const auto first_there = pair.open_there(kFirst), second_there = pair.open_there(kSecond),
             other_there = pair.open_there(kOther);
  first->send({MessageType::Goodbye});
  first->send({MessageType::Error, say("behind it")});
  first.reset();
  second->send({MessageType::Error, say("last")});
  second.reset();
  pair.move();
  EXPECT_EQ(texts(*first_there), Texts{"-"});
  EXPECT_EQ(texts(*second_there), Texts{"last"});
  EXPECT_EQ(first_there->ended(), "closed by the peer");
  EXPECT_EQ(second_there->ended(), "closed by the peer");
  EXPECT_TRUE(first_there->is_closed_by_peer() && second_there->is_closed_by_peer());
  EXPECT_FALSE(other_there->has_news() || other_there->ended());
  other->send({MessageType::Error, say("goes on")});
  first_there->send({MessageType::Error, say("to one that has left")});
  pair.move();
  EXPECT_EQ(texts(*other_there), Texts{"goes on"});
  EXPECT_FALSE(pair.ours->has_ended() || pair.theirs->has_ended());
}

TEST(ControlStreams, EndTogetherWithTheirConnection) {
  Connections pair;
  auto first_there = pair.open_there(kFirst);
  const auto first = pair.open(kFirst), second = pair.open(kSecond);
  first_there->send({MessageType::Error, say("last")});
  pair.theirs->flush();
  first_there.reset();
  pair.theirs.reset();
  pair.ours->receive();
  EXPECT_EQ(texts(*first), Texts{"last"});
  EXPECT_EQ(texts(*second), Texts{});
  for (const auto* link : {&first, &second}) {
    EXPECT_TRUE((*link)->ended());
    EXPECT_TRUE((*link)->is_closed_by_peer());
  }
  const auto late = pair.open(kOther);
  EXPECT_EQ(texts(*late), Texts{});
  EXPECT_EQ(late->ended(), "closed by the peer");
  late->send({MessageType::Error, say("into nothing")});
  EXPECT_FALSE(pair.ours->has_unsent());
}

// A loss has to name a rank.
TEST(ControlStreams, EndAloneAtAMessageThatCannotBeRead) {
  const Connections pair;
  const auto first = pair.open(kFirst), second = pair.open(kSecond);
  const auto first_there = pair.open_there(kFirst), second_there = pair.open_there(kSecond);
  first->send({MessageType::Loss, say("of nobody")});
  second->send({MessageType::Error, say("unharmed")});
  pair.move();
  EXPECT_EQ(texts(*first_there), Texts{});
  ASSERT_TRUE(first_there->ended());
  EXPECT_THAT(*first_there->ended(), HasSubstr("cannot be read"));
  EXPECT_EQ(texts(*second_there), Texts{"unharmed"});
}

TEST(ControlStreams, KeepNoEndlessNumberOfMessages) {
  const Connections pair;
  const auto first = pair.open(kFirst), second = pair.open(kSecond);
  const auto first_there = pair.open_there(kFirst), second_there = pair.open_there(kSecond);
  for (size_t i = 0; i <= ControlLink::kMostWaiting; ++i) {
    first->send({MessageType::Error, say("x")});
    pair.move();
  }
  second->send({MessageType::Error, say("unharmed")});
  pair.move();
  EXPECT_EQ(texts(*first_there).size(), ControlLink::kMostWaiting);
  EXPECT_TRUE(first_there->ended());
  EXPECT_EQ(texts(*second_there), Texts{"unharmed"});
}

TEST(CommonConnection, IsTheOneThatBothHoldWithTheSmallestNumber) {
  const std::vector<HeldConnection> ours{{3, 9}, {3, 5}, {4, 2}, {3, 7}};
  EXPECT_EQ(common_connection(1, ours, 3, {{1, 7}, {1, 9}, {2, 5}}), 7u);
  EXPECT_EQ(common_connection(3, {{1, 7}, {1, 9}, {2, 5}}, 1, ours), 7u) << "the other end chooses alike";
  EXPECT_EQ(common_connection(1, ours, 4, {{1, 7}}), std::nullopt) << "that rank has seen its end";
  EXPECT_EQ(common_connection(1, ours, 4, {{2, 2}}), std::nullopt) << "it is another rank's";
  EXPECT_EQ(common_connection(1, {}, 3, {{1, 7}}), std::nullopt);
}

}  // namespace
}  // namespace ccom
