// SPDX-License-Identifier: Apache-2.0
//
// Numbers in texts that programs read have a point in every locale.
#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/log_writer.h"
#include "base/status.h"
#include "tests/harness/german_locale.h"

namespace ccom {
namespace {

TEST(Text, U14HasThePointOfEveryNumberInEveryLocale) {
  const GermanLocale german;
  EXPECT_EQ(printed("%.3f and %s", 0.5, "a text"), "0.500 and a text");
  EXPECT_EQ(printed("%s", std::string(5000, 'x').c_str()), std::string(5000, 'x'));
  EXPECT_EQ(error(Code::Timeout, "after %.1f s", 1.5).message(), "after 1.5 s");
  std::string_view text = "1.5ms";
  EXPECT_EQ(take_number(text), 1.5);
  EXPECT_EQ(text, "ms");
  EXPECT_EQ(take_number(text), std::nullopt);
  EXPECT_EQ(text, "ms");
  char before[8];
  std::snprintf(before, sizeof before, "%.1f", 0.5);
  EXPECT_STREQ(before, "0,5") << "the program's own locale is as it was";
}

TEST(Text, U14LogLinesToo) {
  const GermanLocale german;
  testing::internal::CaptureStderr();
  log(LogLevel::Error, "after %.1f s", 1.5);
  flush_log();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("after 1.5 s"));
}

TEST(NameRanks, ReadsLikeASentence) {
  EXPECT_EQ(name_ranks({3}), "rank 3");
  EXPECT_EQ(name_ranks({2, 5}), "ranks 2 and 5");
  EXPECT_EQ(name_ranks({2, 3}), "ranks 2 and 3");
  EXPECT_EQ(name_ranks({0, 1, 2, 3, 9, 12, 13, 14}), "ranks 0-3, 9 and 12-14");
}

}  // namespace
}  // namespace ccom
