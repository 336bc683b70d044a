// SPDX-License-Identifier: Apache-2.0
//
// The bench's own narrow floats, against the bit patterns that the formats' definitions give.
#include "bench/formats.h"

#include <gtest/gtest.h>

namespace ccom::bench {
namespace {

TEST(Half, DecodesTheLandmarksOfTheFormat) {
  EXPECT_EQ(Half::decode(0x3c00), 1.0);
  EXPECT_EQ(Half::decode(0xc000), -2.0);
  EXPECT_EQ(Half::decode(0x7bff), 65504.0);
  EXPECT_EQ(Half::decode(0x0400), std::ldexp(1.0, -14));
  EXPECT_EQ(Half::decode(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(Half::decode(0x7c00), HUGE_VAL);
  EXPECT_TRUE(std::isnan(Half::decode(0x7e00)));
}

TEST(Brain, DecodesTheLandmarksOfTheFormat) {
  EXPECT_EQ(Brain::decode(0x3f80), 1.0);
  EXPECT_EQ(Brain::decode(0x4380), 256.0);
  EXPECT_EQ(Brain::decode(0xff80), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(Brain::decode(0x7fc0)));
}

TEST(E4M3, HasNoInfinityAndEndsAt448) {
  EXPECT_EQ(E4M3::decode(0x38), 1.0);
  EXPECT_EQ(E4M3::decode(0x7e), 448.0);
  EXPECT_TRUE(std::isnan(E4M3::decode(0x7f)));
  EXPECT_EQ(E4M3::decode(0x01), std::ldexp(1.0, -9));
}

TEST(E5M2, HasInfinityAndEndsAt57344) {
  EXPECT_EQ(E5M2::decode(0x3c), 1.0);
  EXPECT_EQ(E5M2::decode(0x7b), 57344.0);
  EXPECT_EQ(E5M2::decode(0x7c), HUGE_VAL);
  EXPECT_TRUE(std::isnan(E5M2::decode(0x7d)));
}

template <class Format>
void every_normal_number_survives(uint32_t patterns) {
  for (uint32_t bits = 0; bits < patterns; ++bits) {
    const uint32_t exponent = (bits >> Format::kMantissaBits) & Format::kTopExponent;
    if (exponent == 0 || !std::isfinite(Format::decode(bits))) continue;
    ASSERT_EQ(Format::encode(Format::decode(bits)), bits);
  }
  EXPECT_EQ(Format::encode(0.0), 0u);
}

TEST(NarrowFloats, EncodeWhatTheyDecode) {
  every_normal_number_survives<Half>(1 << 16);
  every_normal_number_survives<Brain>(1 << 16);
  every_normal_number_survives<E4M3>(1 << 8);
  every_normal_number_survives<E5M2>(1 << 8);
}

}  // namespace
}  // namespace ccom::bench
