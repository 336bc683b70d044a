// SPDX-License-Identifier: Apache-2.0
//
// The collectives' traits against the words of include/ccom/ccom.h, written out for four ranks.
#include "base/collective.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ccom {
namespace {

constexpr int kRanks = 4;
constexpr Rank kRank = 2;

struct Units {
  uint32_t input, output;
  friend bool operator==(const Units&, const Units&) = default;
};

struct Expected {
  Collective collective;
  bool reduces;
  Units root, other;             // on the root (rooted ones), on any other rank
  std::optional<int64_t> shift;  // in place on rank 2: send == recv + shift units; none: no in-place form
  double busbw;
};

const std::vector<Expected> kExpected = {
    {Collective::AllReduce, true, {1, 1}, {1, 1}, 0, 1.5},
    {Collective::AllGather, false, {1, 4}, {1, 4}, 2, 0.75},
    {Collective::ReduceScatter, true, {4, 1}, {4, 1}, -2, 0.75},
    {Collective::Broadcast, false, {1, 1}, {0, 1}, 0, 1},
    {Collective::Reduce, true, {1, 1}, {1, 0}, 0, 1},
    {Collective::AllToAll, false, {4, 4}, {4, 4}, 0, 0.75},
    {Collective::Gather, false, {1, 4}, {1, 0}, 2, 0.75},
    {Collective::Scatter, false, {4, 1}, {0, 1}, -2, 0.75},
    {Collective::Barrier, false, {1, 4}, {1, 4}, {}, 0},
    {Collective::SendReceive, false, {1, 1}, {1, 1}, {}, 1},
};

bool has_root(const Expected& expected) { return expected.root != expected.other; }

Units units(Collective collective, bool is_root) {
  return {input_units(collective, kRanks, is_root), output_units(collective, kRanks, is_root)};
}

TEST(Collective, TraitsAreThoseOfTheCApi) {
  ASSERT_EQ(kExpected.size(), kCollectiveTraits.size());
  for (const Expected& expected : kExpected) {
    const Collective collective = expected.collective;
    SCOPED_TRACE(std::string(name_of(collective)));
    EXPECT_EQ(reduces(collective), expected.reduces);
    EXPECT_EQ(is_rooted(collective), has_root(expected));
    EXPECT_EQ(only_root_reads(collective), expected.other.input == 0);
    EXPECT_EQ(only_root_writes(collective), expected.other.output == 0);
    EXPECT_TRUE(units(collective, true) == expected.root);
    EXPECT_TRUE(units(collective, false) == expected.other);
    EXPECT_EQ(largest_units(collective, kRanks), std::max(expected.root.input, expected.root.output));
    EXPECT_EQ(is_per_rank(collective), largest_units(collective, kRanks) == kRanks);
    EXPECT_DOUBLE_EQ(busbw_factor(collective, kRanks), expected.busbw);
    if (collective != Collective::SendReceive) {
      EXPECT_EQ(total_units(collective, kRanks), expected.root.input + expected.root.output +
                                                     (kRanks - 1) * (expected.other.input + expected.other.output));
    }
  }
}

// Moves named contributions as a call would: every output unit holds what its item's contributors put in.
TEST(Collective, ItemsLeadFromInputsToOutputs) {
  constexpr Rank kRoot = 1;
  using Contribution = std::pair<Rank, uint32_t>;  // whose, and its unit
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    if (traits.collective == Collective::SendReceive) continue;
    SCOPED_TRACE(std::string(traits.name));
    std::vector<std::set<Contribution>> items(items_of(traits.collective, kRanks));
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (uint32_t unit = 0; unit < input_units(traits.collective, kRanks, rank == kRoot); ++unit) {
        items.at(input_item(traits.collective, kRanks, rank, unit)).insert({rank, unit});
      }
    }
    for (Rank rank = 0; rank < kRanks; ++rank) {
      for (uint32_t unit = 0; unit < output_units(traits.collective, kRanks, rank == kRoot); ++unit) {
        // The sender of what is not a sum, and which of its input's units this rank gets.
        const Rank source = only_root_reads(traits.collective) ? kRoot : static_cast<Rank>(unit);
        const uint32_t wanted = input_is_per_rank(traits.collective) ? static_cast<uint32_t>(rank) : 0;
        std::set<Contribution> expected{{source, wanted}};
        for (Rank r = 0; traits.reduces && r < kRanks; ++r) expected.insert({r, wanted});
        if (!traits.reduces) {
          const uint64_t item = output_item(traits.collective, kRanks, rank, unit);
          EXPECT_EQ(source_of(traits.collective, kRanks, kRoot, item), source);
        }
        EXPECT_EQ(items.at(output_item(traits.collective, kRanks, rank, unit)), expected) << rank << " " << unit;
      }
    }
  }
}

TEST(Collective, InPlaceIsWhatTheCApiSays) {
  constexpr size_t kUnitBytes = 24;
  std::byte memory[8 * kUnitBytes];
  std::byte* const middle = memory + 4 * kUnitBytes;
  for (const Expected& expected : kExpected) {
    SCOPED_TRACE(std::string(name_of(expected.collective)));
    EXPECT_EQ(has_in_place(expected.collective), expected.shift.has_value());
    if (expected.shift) {
      EXPECT_EQ(in_place_shift(expected.collective, kRank), *expected.shift);
    }
    const BufferUse of_root = buffer_use(expected.collective, kRank, kRanks, kRank, kUnitBytes);
    const BufferUse of_other = buffer_use(expected.collective, kRank, kRanks, kRank + 1, kUnitBytes);
    for (int64_t shift = -4; shift < 4; ++shift) {
      const std::byte* const input = middle + shift * static_cast<int64_t>(kUnitBytes);
      EXPECT_EQ(of_root.is_in_place(input, middle), shift == expected.shift) << shift;
      EXPECT_EQ(of_other.is_in_place(input, middle), shift == expected.shift && !has_root(expected)) << shift;
    }
  }
}

TEST(Collective, NamesAreFoundAgain) {
  std::set<std::string_view> names;
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    names.insert(name_of(traits.collective));
    EXPECT_EQ(collective_from(name_of(traits.collective)), traits.collective);
  }
  EXPECT_EQ(names.size(), kCollectiveTraits.size());
  EXPECT_EQ(collective_from("all_reduce"), std::nullopt);
  EXPECT_EQ(collective_from(""), std::nullopt);
}

}  // namespace
}  // namespace ccom
