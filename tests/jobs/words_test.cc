// SPDX-License-Identifier: Apache-2.0
//
// Figures and texts fit their columns, whatever they are made of.
#include "tools/jobs/words.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ccom {
namespace {

TEST(Words, FiguresHaveThreeDigits) {
  EXPECT_EQ(short_figure(0), "0");
  EXPECT_EQ(short_figure(12), "12");
  EXPECT_EQ(short_figure(999), "999");
  EXPECT_EQ(short_figure(1870), "1.87 k");
  EXPECT_EQ(short_figure(18700), "18.7 k");
  EXPECT_EQ(short_figure(187e9), "187 G");
}

TEST(Words, FiguresOfAnyNumberFit) {
  for (double number = 1e-6; number < 1e17; number *= 1.37) EXPECT_LE(short_figure(number).size(), 7U) << number;
  EXPECT_EQ(short_figure(std::nan("")), "?");
  EXPECT_EQ(short_figure(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(short_figure(-1), "?");
}

TEST(Words, SecondsAreReadable) {
  EXPECT_EQ(short_seconds(-1), "");
  EXPECT_EQ(short_seconds(0.87), "870 ms");
  EXPECT_EQ(short_seconds(12.4), "12.4 s");
  EXPECT_EQ(short_seconds(185), "3:05");
  EXPECT_EQ(short_seconds(7384), "2:03:04");
  EXPECT_EQ(short_seconds(1e300).size(), short_seconds(1e12).size());
}

TEST(Words, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(cut("allreduce", 9), "allreduce");
  EXPECT_EQ(cut("allreduce", 8), "allre...");
  EXPECT_EQ(cut("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6", 4), "\xc3\xa4...");
  EXPECT_EQ(cut("abc", 2), "..");
  EXPECT_EQ(cut("abc", 0), "");
  EXPECT_EQ(cut("\xff\xfe\x80", 1).size() <= 3, true);
}

}  // namespace
}  // namespace ccom
