// SPDX-License-Identifier: Apache-2.0
//
// The encoding of errors: what goes in comes out, long values are cut, and no damaged bytes are taken for an error.
#include "control/error_codec.h"

#include <gtest/gtest.h>

#include <climits>
#include <numeric>
#include <random>

#include "control/control.pb.h"

namespace ccom {
namespace {

Status sample() {
  return error(ErrorKey::RankDied, "rank %d died", 3)
      .with_peers({3, 7})
      .with_host("node-1")
      .with_cure("restart")
      .with_errno(104);
}

TEST(ErrorEncoding, KeepsEveryField) {
  const auto back = decode_error(encode_error(sample()));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->code(), Code::RemoteError);
  EXPECT_EQ(back->key(), ErrorKey::RankDied);
  EXPECT_EQ(back->message(), "rank 3 died");
  EXPECT_EQ(back->peers(), (std::vector<int>{3, 7}));
  EXPECT_EQ(back->host(), "node-1");
  EXPECT_EQ(back->cure(), "restart");
  EXPECT_EQ(back->sys_errno(), 104);
}

TEST(ErrorEncoding, CutsWhatIsTooLongBetweenCharacters) {
  std::string text(kMaxErrorText - 1, 'x');
  text += "\u00e9\u00e9";  // the limit falls inside the first of these
  std::vector<int> everybody(1000);
  const auto bytes = encode_error(Status(Code::Aborted, text).with_peers(everybody).with_host(text).with_cure(text));
  EXPECT_LE(bytes.size(), kMaxErrorBytes);
  const auto back = decode_error(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->message(), text.substr(0, kMaxErrorText - 1));
  EXPECT_EQ(back->peers().size(), kMaxErrorRanks);
  EXPECT_EQ(back->host().size(), kMaxErrorHost);
}

TEST(ErrorEncoding, RefusesEveryTruncationAndEveryExcess) {
  auto bytes = encode_error(sample());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_error(ConstBytes(bytes).first(size))) << size;
  bytes.push_back({});
  EXPECT_FALSE(decode_error(bytes));
}

TEST(ErrorEncoding, KeepsEveryKey) {
  for (const ErrorKey key : {ErrorKey::RankDied, ErrorKey::NeverJoined, ErrorKey::RankLate, ErrorKey::LeftOut,
                             ErrorKey::RanksDisagree, ErrorKey::ResultsDiffer}) {
    const auto back = decode_error(encode_error(error(key, "a text")));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->key(), key);
  }
}

TEST(ErrorEncoding, RefusesAnErrorThatIsNone) {
  for (const Code code : {Code::Ok, static_cast<Code>(9), static_cast<Code>(200), static_cast<Code>(-1)}) {
    wire::Error message;
    put_error(sample(), message);
    message.set_code(static_cast<int>(code));
    EXPECT_FALSE(error_in(message)) << static_cast<int>(code);
    const std::string bytes = message.SerializeAsString();
    EXPECT_FALSE(decode_error(std::as_bytes(std::span(bytes)))) << static_cast<int>(code);
  }
}

// Where its place has no limit nothing is cut, and texts may be any bytes.
TEST(ErrorEncoding, KeepsLongValuesAndAnyBytes) {
  const std::string text = std::string(100000, 'x') + "\xff\xfe";
  std::vector<int> everybody(1000);
  std::iota(everybody.begin(), everybody.end(), 0);
  wire::Error message, arrived;
  put_error(Status(Code::Aborted, text).with_peers(everybody), message);
  ASSERT_TRUE(arrived.ParseFromString(message.SerializeAsString()));
  const std::optional<Status> back = error_in(arrived);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->message(), text);
  EXPECT_EQ(back->peers(), everybody);
}

// No number makes the encoding longer than its place.
TEST(ErrorEncoding, FitsWithTheLargestNumbers) {
  const std::string text(5000, 'x');
  for (const int number : {INT_MAX, INT_MIN, -1}) {
    const std::vector<int> ranks(kMaxErrorRanks, number);
    const Status error = Status(ErrorKey::ResultsDiffer, text).with_peers(ranks).with_host(text).with_cure(text);
    const auto bytes = encode_error(Status(error).with_errno(number));
    EXPECT_LE(bytes.size(), kMaxErrorBytes);
    ASSERT_TRUE(decode_error(bytes));
    EXPECT_EQ(decode_error(bytes)->peers(), ranks);
  }
}

TEST(ErrorEncoding, SurvivesRandomDamage) {
  std::mt19937 random(1);
  const auto good = encode_error(sample());
  for (int i = 0; i < 20000; ++i) {
    auto bytes = good;
    for (int hits = 1 + static_cast<int>(random() % 4); hits > 0; --hits)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto back = decode_error(bytes);
    EXPECT_FALSE(back && back->is_ok());
  }
}

TEST(ErrorKey, OfAnotherVersionIsTheGeneralOneOfItsCode) {
  EXPECT_EQ(key_of(0, Code::Timeout), ErrorKey::TooLong);
  EXPECT_EQ(key_of(40000, Code::Timeout), ErrorKey::TooLong);
  EXPECT_EQ(key_of(static_cast<uint32_t>(ErrorKey::RankDied), Code::Timeout), ErrorKey::TooLong);
  EXPECT_EQ(key_of(static_cast<uint32_t>(ErrorKey::RankLate), Code::Timeout), ErrorKey::RankLate);
}

TEST(ErrorKey, StandsBehindTheText) {
  EXPECT_EQ(sample().text(), "rank 3 died (restart) [CCOM-E025]");
  EXPECT_EQ(Status().text(), "");
}

}  // namespace
}  // namespace ccom
