// SPDX-License-Identifier: Apache-2.0
//
// The fragment header, pure: the checksum is the standard one, any damage to a header shows, and only fragments that
// lie on the grid of their message pass.
#include "transports/tcp/wire.h"

#include <gtest/gtest.h>

#include <string_view>

namespace ccom::tcp {
namespace {

ConstBytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Crc32c, GivesTheStandardCheckValue) { EXPECT_EQ(crc32c(bytes_of("123456789"), 0), 0xE3069283u); }

TEST(Crc32c, MayBeTakenInPieces) {
  const std::string_view text = "The quick brown fox jumps over the lazy dog, again and again and again.";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes_of(text.substr(cut)), crc32c(bytes_of(text.substr(0, cut)), 0)), crc32c(bytes_of(text), 0));
  }
}

TEST(FragmentHeader, ShowsEveryDamagedBit) {
  FragmentHeader header{.envelope = {{1, 2, 3, 4, 5}}, .message = 9, .size_bytes = 100, .length_bytes = 100};
  seal(header);
  ASSERT_TRUE(is_sealed(header));
  for (size_t bit = 0; bit < 8 * sizeof(header); ++bit) {
    FragmentHeader damaged = header;
    std::as_writable_bytes(std::span(&damaged, 1))[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(is_sealed(damaged)) << "bit " << bit;
  }
}

struct Place {
  uint64_t size, offset;
  uint32_t length;
};

bool is_on_grid_of_64(const Place& place) {
  return is_on_grid({.size_bytes = place.size, .offset_bytes = place.offset, .length_bytes = place.length}, 64);
}

TEST(FragmentHeader, LiesOnTheGridOfItsMessage) {
  for (const Place& good :
       {Place{0, 0, 0}, {1, 0, 1}, {64, 0, 64}, {65, 0, 64}, {65, 64, 1}, {200, 128, 64}, {200, 192, 8}}) {
    EXPECT_TRUE(is_on_grid_of_64(good)) << good.size << " " << good.offset << " " << good.length;
  }
  constexpr uint64_t kHuge = ~uint64_t{0} - 63;
  for (const Place& bad : {Place{0, 0, 1},
                           {0, 64, 0},
                           {1, 0, 0},
                           {1, 0, 64},
                           {65, 0, 65},
                           {65, 1, 64},
                           {65, 64, 64},
                           {64, 64, 64},
                           {64, 64, 0},
                           {64, kHuge, 64},
                           {200, 192, 64}}) {
    EXPECT_FALSE(is_on_grid_of_64(bad)) << bad.size << " " << bad.offset << " " << bad.length;
  }
}

TEST(Grid, CountsFragments) {
  EXPECT_EQ(fragments_of(0, 64), 1u);
  EXPECT_EQ(fragments_of(64, 64), 1u);
  EXPECT_EQ(fragments_of(65, 64), 2u);
  EXPECT_EQ(fragments_of(~size_t{0}, 64), (size_t{1} << 58));
  for (const int streams : {1, 2, 16}) {
    EXPECT_LE(grid_bytes(streams), kMaxFragmentBytes);
    EXPECT_EQ(grid_bytes(streams) % 16, 0u) << "what a Sink is promised";
  }
}

}  // namespace
}  // namespace ccom::tcp
