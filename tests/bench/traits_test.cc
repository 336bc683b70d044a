// SPDX-License-Identifier: Apache-2.0
//
// The bench knows the collectives from the C API alone; the library's own table must say the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/collective.h"
#include "bench/cases.h"
#include "bench/statistics.h"

namespace ccom::bench {
namespace {

constexpr int kRanks = 5;
constexpr int kRoot = 2;
constexpr size_t kElements = 7;

TEST(Traits, BenchAndLibraryAgreeOnBuffersAndRates) {
  ASSERT_EQ(all_collectives().size() - static_cast<size_t>(std::ranges::count_if(all_collectives(), is_v)),
            kCollectiveTraits.size());
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    SCOPED_TRACE(std::string(traits.name));
    const std::optional<Collective> collective = collective_named(traits.name);
    ASSERT_TRUE(collective);
    EXPECT_EQ(reduces(*collective), traits.reduces);
    EXPECT_EQ(has_root(*collective), is_rooted(traits.collective));
    EXPECT_EQ(has_in_place(*collective), ccom::has_in_place(traits.collective));
    EXPECT_DOUBLE_EQ(busbw_factor(*collective, kRanks), ccom::busbw_factor(traits.collective, kRanks));
    if (*collective == Collective::Barrier) continue;  // no buffers
    Case what{.collective = *collective, .type = ccomFloat64, .root = kRoot, .ranks = kRanks, .count = kElements};
    EXPECT_EQ(size_bytes_of(what), kElements * 8 * largest_units(traits.collective, kRanks));
    for (int rank = 0; rank < kRanks; ++rank) {
      const bool is_root = rank == kRoot;
      what.in_place = false;
      const Layout apart = layout_of(what, rank);
      EXPECT_EQ(apart.has_send ? apart.send_count : 0, kElements * input_units(traits.collective, kRanks, is_root));
      EXPECT_EQ(apart.has_recv ? apart.recv_count : 0, kElements * output_units(traits.collective, kRanks, is_root));
      what.in_place = true;
      const Layout same = layout_of(what, rank);
      if (!has_in_place(*collective) || !same.has_send || !same.has_recv) continue;
      const auto shift = static_cast<int64_t>(same.send_offset) - static_cast<int64_t>(same.recv_offset);
      EXPECT_EQ(shift, in_place_shift(traits.collective, rank) * int64_t{kElements});
    }
  }
}

}  // namespace
}  // namespace ccom::bench
