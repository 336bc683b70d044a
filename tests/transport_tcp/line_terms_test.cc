// SPDX-License-Identifier: Apache-2.0
//
// What the sides of a connection compare. The handshake itself: tests/base/handshake_test.cc.
#include "transports/tcp/line_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ccom::tcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LineTerms, NameTheSettingThatDiffers) {
  const Identity self{.rank = 2, .communicator = 5, .streams = 3};
  const LineTerms mine = terms_of(self, {.peer = 4, .channel = 1, .stream = 2}, 2);
  EXPECT_EQ(mine.channel, 1);
  EXPECT_EQ(mine.stream, 2);
  LineTerms theirs = mine;
  EXPECT_TRUE(compare_settings(mine, theirs, 9).is_ok());
  theirs.crc = 0;
  const Status status = compare_settings(mine, theirs, 9);
  EXPECT_EQ(status.code(), Code::ConfigError);
  EXPECT_THAT(status.message(), HasSubstr("CCOM_CRC"));
  EXPECT_THAT(status.peers(), ElementsAre(9));
  theirs = mine;
  theirs.streams = 8;
  EXPECT_THAT(compare_settings(mine, theirs, 9).message(), HasSubstr("CCOM_TCP_STREAMS): 3 here, 8 at rank 9"));
  theirs = mine;
  theirs.channels = 1;
  EXPECT_THAT(compare_settings(mine, theirs, 9).message(), HasSubstr("channels of the pair"));
}

TEST(LineTerms, TravelInAHandshakeOfTheirOwnProtocol) {
  const Identity acceptor{.rank = 2, .communicator = 5}, connector{.rank = 4, .communicator = 5};
  Handshake accepting = Handshake::acceptor(handshake_identity(acceptor));
  Handshake connecting = Handshake::connector(handshake_identity(connector), 2);
  const HandshakeMessage hello = connecting.next(terms_of(connector, {.peer = 2, .channel = 3, .stream = 1}, 4));
  EXPECT_EQ(hello.protocol, HandshakeProtocol::Tcp);
  ASSERT_TRUE(accepting.receive(hello));
  EXPECT_EQ(accepting.peer(), 4);
  EXPECT_EQ(hello.terms_as<LineTerms>().channel, 3);
}

}  // namespace
}  // namespace ccom::tcp
