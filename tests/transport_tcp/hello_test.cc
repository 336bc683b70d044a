// SPDX-License-Identifier: Apache-2.0
//
// The handshake, pure: only a holder of the key who follows this very dialogue is genuine.
#include "transports/tcp/hello.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ccom::tcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Secret kKey = Secret::from_text("a test's key");
const Identity kAcceptor{.rank = 2, .communicator = 5, .key = kKey};
const Identity kDialler{.rank = 4, .communicator = 5, .key = kKey};

std::vector<Hello> dialogue() {
  std::vector<Hello> said;
  said.push_back(make_hello(kDialler, {.peer = 2, .channel = 1}, 2, HelloKind::Hello, said));
  said.push_back(make_hello(kAcceptor, {.peer = 4, .channel = 1}, 2, HelloKind::Answer, said));
  said.push_back(make_hello(kDialler, {.peer = 2, .channel = 1}, 2, HelloKind::Confirm, said));
  return said;
}

TEST(Hello, AcceptsAnHonestDialogue) {
  const auto said = dialogue();
  EXPECT_TRUE(is_genuine(said[0], HelloKind::Hello, kAcceptor, {}));
  EXPECT_TRUE(is_genuine(said[1], HelloKind::Answer, kDialler, Transcript(said).first(1)));
  EXPECT_TRUE(is_genuine(said[2], HelloKind::Confirm, kAcceptor, Transcript(said).first(2)));
}

TEST(Hello, NoticesEveryDamagedBit) {
  const auto said = dialogue();
  for (size_t bit = 0; bit < 8 * sizeof(Hello); ++bit) {
    Hello damaged = said[0];
    std::as_writable_bytes(std::span(&damaged, 1))[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(is_genuine(damaged, HelloKind::Hello, kAcceptor, {})) << "bit " << bit;
  }
}

TEST(Hello, RefusesAnotherKeyCommunicatorRankOrKind) {
  const Hello hello = dialogue()[0];
  Identity other = kAcceptor;
  other.key = Secret::from_text("another key");
  EXPECT_FALSE(is_genuine(hello, HelloKind::Hello, other, {}));
  other = kAcceptor;
  other.communicator = 6;
  EXPECT_FALSE(is_genuine(hello, HelloKind::Hello, other, {}));
  EXPECT_FALSE(is_genuine(hello, HelloKind::Hello, kDialler, {})) << "one's own hello, reflected";
  EXPECT_FALSE(is_genuine(hello, HelloKind::Answer, kAcceptor, {}));
}

// Somebody who has recorded one dialogue can repeat the hello, but has no confirmation for the fresh answer.
TEST(Hello, RefusesARecording) {
  const auto recorded = dialogue();
  std::vector<Hello> said = {recorded[0]};
  said.push_back(make_hello(kAcceptor, {.peer = 4, .channel = 1}, 2, HelloKind::Answer, said));
  EXPECT_FALSE(is_genuine(recorded[2], HelloKind::Confirm, kAcceptor, said));
  EXPECT_FALSE(is_genuine(recorded[1], HelloKind::Answer, kDialler, Transcript(dialogue()).first(1)));
}

TEST(Hello, NamesTheSettingThatDiffers) {
  const Hello mine = dialogue()[0];
  Hello theirs = mine;
  theirs.from = 9;
  EXPECT_TRUE(compare_settings(mine, theirs).is_ok());
  theirs.crc = 0;
  const Status status = compare_settings(mine, theirs);
  EXPECT_EQ(status.code(), Code::ConfigError);
  EXPECT_THAT(status.message(), HasSubstr("CCOM_CRC"));
  EXPECT_THAT(status.peers(), ElementsAre(9));
  theirs = mine;
  theirs.streams = 8;
  EXPECT_THAT(compare_settings(mine, theirs).message(), HasSubstr("CCOM_TCP_STREAMS"));
  theirs = mine;
  theirs.channels = 1;
  EXPECT_THAT(compare_settings(mine, theirs).message(), HasSubstr("channels of the pair"));
}

}  // namespace
}  // namespace ccom::tcp
