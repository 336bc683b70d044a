// SPDX-License-Identifier: Apache-2.0
//
// Which receive gets which message.
#include "messages/matcher.h"

#include <gtest/gtest.h>

namespace ccom {
namespace {

std::shared_ptr<Message> receive(Rank peer, int64_t tag) {
  MessageRequest request;
  request.peer = peer;
  request.tag = tag;
  return std::make_shared<Message>(std::move(request));
}

Arrival arrival(Rank peer, int64_t tag, uint64_t id) {
  Arrival made;
  made.peer = peer;
  made.tag = tag;
  made.id = id;
  return made;
}

TEST(Matcher, FindsNothingAtFirst) {
  Matcher matcher(3);
  EXPECT_EQ(matcher.take_receive(0, 0), nullptr);
  EXPECT_FALSE(matcher.take_arrival(0, 0).has_value());
  EXPECT_FALSE(matcher.take_arrival(kAnyRank, 0).has_value());
  EXPECT_EQ(matcher.awaiting(0), nullptr);
}

TEST(Matcher, KeepsTheOrderOfEachPeerAndTag) {
  Matcher matcher(3);
  matcher.keep_arrival(arrival(1, 5, 10));
  matcher.keep_arrival(arrival(1, 6, 11));
  matcher.keep_arrival(arrival(1, 5, 12));
  EXPECT_EQ(matcher.take_arrival(1, 6)->id, 11U);
  EXPECT_EQ(matcher.take_arrival(1, 5)->id, 10U);
  EXPECT_EQ(matcher.take_arrival(1, 5)->id, 12U);
  EXPECT_FALSE(matcher.take_arrival(1, 5).has_value());
  EXPECT_FALSE(matcher.take_arrival(2, 5).has_value());
}

TEST(Matcher, GivesAReceiveFromAnyRankWhatCameFirst) {
  Matcher matcher(3);
  matcher.keep_arrival(arrival(2, 5, 20));
  matcher.keep_arrival(arrival(0, 5, 21));
  matcher.keep_arrival(arrival(1, 4, 22));
  EXPECT_EQ(matcher.take_arrival(kAnyRank, 5)->peer, 2);
  EXPECT_EQ(matcher.take_arrival(kAnyRank, 5)->peer, 0);
  EXPECT_FALSE(matcher.take_arrival(kAnyRank, 5).has_value());
}

TEST(Matcher, GivesAMessageToTheReceiveThatWasPostedFirst) {
  Matcher matcher(3);
  const auto any = receive(kAnyRank, 5);
  const auto named = receive(1, 5);
  const auto later = receive(kAnyRank, 5);
  for (const auto& posted : {any, named, later}) matcher.keep_receive(posted);
  EXPECT_EQ(matcher.awaiting(1), named);
  EXPECT_EQ(matcher.awaiting(kAnyRank), any);
  EXPECT_EQ(matcher.take_receive(1, 5), any);
  EXPECT_EQ(matcher.take_receive(1, 5), named);
  EXPECT_EQ(matcher.awaiting(1), nullptr);
  EXPECT_EQ(matcher.take_receive(2, 4), nullptr);
  EXPECT_EQ(matcher.take_receive(2, 5), later);
  EXPECT_EQ(matcher.take_receive(2, 5), nullptr);
}

TEST(Matcher, ForgetsWhatItNeedsNoMore) {
  Matcher matcher(2);
  for (int64_t tag = 0; tag < 5000; ++tag) {
    matcher.keep_receive(receive(1, tag));
    EXPECT_NE(matcher.take_receive(1, tag), nullptr);
    matcher.keep_arrival(arrival(1, tag, 0));
    EXPECT_TRUE(matcher.take_arrival(1, tag).has_value());
  }
  matcher.keep_receive(receive(0, 7));
  matcher.keep_arrival(arrival(0, 8, 0));
  matcher.clear();
  EXPECT_EQ(matcher.awaiting(0), nullptr);
  EXPECT_FALSE(matcher.take_arrival(0, 8).has_value());
}

}  // namespace
}  // namespace ccom
