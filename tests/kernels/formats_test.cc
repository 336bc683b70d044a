// SPDX-License-Identifier: Apache-2.0
//
// Shows that the scalar conversions are those of the formats' definitions: every code widens to its value, floats
// around every rounding border narrow to the nearest code, and published values are met.
#include "kernels/formats.h"

#include "reference.h"
#include "workload.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace ccom {
namespace {

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

TEST(Formats, WidenEveryCodeToItsValueAndBack) {
  for (const DataType type : kNarrowFloats) {
    const reference::Format& expected = reference::Format::of(type);
    for (uint32_t code = 0; code < expected.codes(); ++code) {
      const float value = widen(format_of(type), code);
      if (std::isnan(expected.value(code))) {
        ASSERT_TRUE(std::isnan(value)) << name_of(type) << " " << code;
        ASSERT_EQ(narrow(format_of(type), value), expected.nan()) << name_of(type) << " " << code;
      } else {
        ASSERT_TRUE(same_bits(value, static_cast<float>(expected.value(code)))) << name_of(type) << " " << code;
        ASSERT_EQ(narrow(format_of(type), value), code) << name_of(type);
      }
    }
  }
}

TEST(Formats, NarrowToTheNearestCodeTiesToEven) {
  // Every sign and exponent and upper mantissa of a float, with lower mantissas on both sides of every possible border.
  constexpr uint32_t kLower[] = {0, 1, 0x7ff, 0x800, 0xfff, 0x1000, 0x1001, 0x1fff};
  for (const DataType type : kNarrowFloats) {
    const reference::Format& expected = reference::Format::of(type);
    for (uint32_t upper = 0; upper < (1u << 19); ++upper) {
      const uint32_t bits = upper << 13 | kLower[(upper * 2654435761u) >> 29];
      const float value = std::bit_cast<float>(bits);
      ASSERT_EQ(narrow(format_of(type), value), expected.nearest(static_cast<double>(value)))
          << name_of(type) << " " << value;
    }
  }
}

TEST(Formats, NarrowJustBesideEveryBorder) {
  for (const DataType type : kNarrowFloats) {
    const reference::Format& expected = reference::Format::of(type);
    for (uint32_t code = 0; code + 1 <= format_of(type).max_finite; ++code) {
      const float border = static_cast<float>((expected.value(code) + expected.value(code + 1)) / 2);
      const float below = std::nextafterf(border, 0.0f);
      const float above = std::nextafterf(border, std::numeric_limits<float>::infinity());
      ASSERT_EQ(narrow(format_of(type), border), code + code % 2) << name_of(type);
      ASSERT_EQ(narrow(format_of(type), below), code) << name_of(type);
      ASSERT_EQ(narrow(format_of(type), above), code + 1) << name_of(type);
    }
  }
}

TEST(Formats, MeetPublishedValuesOfFloat8e4m3) {
  static_assert(widen(kFloat8e4m3, 0x7e) == 448.0f);
  static_assert(widen(kFloat8e4m3, 0x08) == 0x1p-6f, "the smallest normal number");
  static_assert(widen(kFloat8e4m3, 0x07) == 0x1.cp-7f, "the largest subnormal");
  static_assert(widen(kFloat8e4m3, 0x01) == 0x1p-9f, "the smallest subnormal");
  static_assert(widen(kFloat8e4m3, 0xb8) == -1.0f);
  static_assert(narrow(kFloat8e4m3, 448.0f) == 0x7e);
  static_assert(narrow(kFloat8e4m3, 464.0f) == 0x7e, "halfway to the first number beyond");
  static_assert(narrow(kFloat8e4m3, 465.0f) == 0x7f, "overflow is NaN");
  static_assert(narrow(kFloat8e4m3, -500.0f) == 0xff);
  static_assert(narrow(kFloat8e4m3, 0x1p-10f) == 0x00);
  static_assert(narrow(kFloat8e4m3, 0x1.8p-10f) == 0x01);
  EXPECT_EQ(narrow(kFloat8e4m3, std::numeric_limits<float>::infinity()), 0x7fu);
  EXPECT_EQ(narrow(kFloat8e4m3, -0.0f), 0x80u);
}

TEST(Formats, MeetPublishedValuesOfFloat8e5m2) {
  static_assert(widen(kFloat8e5m2, 0x7b) == 57344.0f);
  static_assert(widen(kFloat8e5m2, 0x04) == 0x1p-14f, "the smallest normal number");
  static_assert(widen(kFloat8e5m2, 0x03) == 0x1.8p-15f, "the largest subnormal");
  static_assert(widen(kFloat8e5m2, 0x01) == 0x1p-16f, "the smallest subnormal");
  static_assert(narrow(kFloat8e5m2, 61439.0f) == 0x7b);
  static_assert(narrow(kFloat8e5m2, 61440.0f) == 0x7c, "halfway rounds to infinity");
  static_assert(narrow(kFloat8e5m2, -61440.0f) == 0xfc);
  EXPECT_TRUE(std::isinf(widen(kFloat8e5m2, 0x7c)));
  EXPECT_EQ(narrow(kFloat8e5m2, std::numeric_limits<float>::quiet_NaN()), 0x7eu);
}

TEST(Formats, MeetPublishedValuesOfTheSixteenBitFormats) {
  static_assert(widen(kFloat16, 0x7bff) == 65504.0f);
  static_assert(widen(kFloat16, 0x0001) == 0x1p-24f);
  static_assert(narrow(kFloat16, 65519.0f) == 0x7bff);
  static_assert(narrow(kFloat16, 65520.0f) == 0x7c00);
  static_assert(narrow(kFloat16, 0x1p-25f) == 0x0000, "halfway to the smallest subnormal");
  static_assert(widen(kBfloat16, 0x3f80) == 1.0f);
  static_assert(narrow(kBfloat16, 1.00390625f) == 0x3f80, "halfway to the next number");
  static_assert(narrow(kBfloat16, std::numeric_limits<float>::max()) == 0x7f80);
}

}  // namespace
}  // namespace ccom
