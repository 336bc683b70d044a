// SPDX-License-Identifier: Apache-2.0
//
// Counts, layouts and arrivals of each collective. The last test carries out every collective by hand, following layout
// and arrivals of all ranks, and checks that together they describe a possible outcome.
#include "bench/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ccom::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CountFor, TakesTheSizeAsTheBytesOfTheLargerBuffer) {
  EXPECT_EQ(count_for(Collective::AllReduce, ccomFloat32, 4, 4096), 1024u);
  EXPECT_EQ(count_for(Collective::AllGather, ccomFloat32, 4, 4096), 256u);
  EXPECT_EQ(count_for(Collective::ReduceScatter, ccomFloat64, 4, 4096), 128u);
  EXPECT_EQ(count_for(Collective::Scatter, ccomInt8, 3, 3000), 1000u);
  EXPECT_EQ(count_for(Collective::SendRecv, ccomInt8, 3, 3000), 3000u);
}

TEST(CountFor, RoundsDownButNotToNothing) {
  EXPECT_EQ(count_for(Collective::AllReduce, ccomFloat32, 4, 4099), 1024u);
  EXPECT_EQ(count_for(Collective::AllGather, ccomFloat32, 4, 8), 1u);
  EXPECT_EQ(count_for(Collective::AllGather, ccomFloat32, 4, 0), 0u);
  EXPECT_EQ(count_for(Collective::AllReduce, ccomUint8, 4, size_t{5} << 30), size_t{5} << 30);
}

TEST(SizeBytesOf, IsTheTrueSize) {
  EXPECT_EQ(size_bytes_of({.collective = Collective::AllGather, .type = ccomFloat32, .ranks = 4, .count = 1}), 16u);
  EXPECT_EQ(size_bytes_of({.collective = Collective::Broadcast, .type = ccomFloat16, .ranks = 4, .count = 5}), 10u);
}

TEST(LayoutOf, PutsTheSmallerBufferIntoTheOwnBlockInPlace) {
  Case what{.collective = Collective::AllGather, .type = ccomInt8, .in_place = true, .ranks = 4, .count = 10};
  EXPECT_EQ(layout_of(what, 3).send_offset, 30u);
  what.collective = Collective::ReduceScatter;
  EXPECT_EQ(layout_of(what, 3).recv_offset, 30u);
  what.in_place = false;
  EXPECT_EQ(layout_of(what, 3).recv_offset, 0u);
}

TEST(LayoutOf, PassesNothingWhereABufferHasNoMeaning) {
  EXPECT_FALSE(layout_of({.collective = Collective::Broadcast, .root = 1, .ranks = 2, .count = 1}, 0).has_send);
  EXPECT_TRUE(layout_of({.collective = Collective::Broadcast, .root = 1, .ranks = 2, .count = 1}, 1).has_send);
  EXPECT_FALSE(layout_of({.collective = Collective::Gather, .root = 1, .ranks = 2, .count = 1}, 0).has_recv);
  EXPECT_THAT(arrivals({.collective = Collective::Reduce, .root = 1, .ranks = 2, .count = 1}, 0, 1), IsEmpty());
}

TEST(LayoutOf, PutsTheOwnPartOfAVFormIntoItsPlace) {
  Case what{.collective = Collective::AllGatherV, .type = ccomInt8, .in_place = true, .ranks = 4, .count = 10};
  what.skew = Skew::Linear;  // 4, 8, 12, 16
  EXPECT_EQ(layout_of(what, 2).send_offset, 12u);
  EXPECT_EQ(layout_of(what, 2).send_count, 12u);
  EXPECT_EQ(layout_of(what, 2).recv_count, 40u);
  what.collective = Collective::ReduceScatterV;
  EXPECT_EQ(layout_of(what, 3).recv_offset, 24u);
  EXPECT_EQ(layout_of(what, 3).recv_count, 16u);
  EXPECT_EQ(extent_of(what).send_count, 40u);
  EXPECT_EQ(extent_of(what).recv_count, 16u);
  EXPECT_EQ(size_bytes_of(what), 40u);
}

TEST(Parts, AreAsManyElementsAsEqualOnes) {
  for (const Skew skew : all_skews()) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{7}, size_t{1} << 40}) {
      for (const int ranks : {1, 2, 3, 64, 65536}) {
        const Parts parts(skew, ranks, count);
        EXPECT_EQ(parts.begin(ranks - 1) + parts.length(ranks - 1), static_cast<size_t>(ranks) * count);
        EXPECT_EQ(parts.begin(0), 0u);
      }
    }
  }
}

TEST(Parts, DifferByRank) {
  const Parts linear(Skew::Linear, 4, 10), one(Skew::One, 4, 10), none(Skew::None, 4, 10);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(linear.length(rank), 4u * (static_cast<size_t>(rank) + 1));
    EXPECT_EQ(one.length(rank), rank == 3 ? 40u : 0u);
    EXPECT_EQ(none.length(rank), 10u);
  }
  EXPECT_EQ(linear.pair_length(1, 3), 12u);
  EXPECT_EQ(linear.pair_length(3, 1), 12u);
  EXPECT_EQ(linear.pair_length(0, 3), 16u);
  EXPECT_EQ(linear.pair_length(3, 0), 8u) << "differs by direction";
}

// Both ends of each pair say one number.
TEST(CountsOf, AgreeBetweenRanks) {
  for (const Skew skew : all_skews()) {
    const Case what{.collective = Collective::AllToAllV, .ranks = 5, .count = 7, .skew = skew};
    for (int from = 0; from < 5; ++from) {
      for (int to = 0; to < 5; ++to) {
        EXPECT_EQ(counts_of(what, from).sent[static_cast<size_t>(to)],
                  counts_of(what, to).received[static_cast<size_t>(from)]);
      }
    }
  }
  EXPECT_THAT(counts_of({.collective = Collective::GatherV, .ranks = 2, .count = 3, .skew = Skew::One}, 0).received,
              ElementsAre(0, 6));
  EXPECT_THAT(counts_of({.collective = Collective::ScatterV, .ranks = 2, .count = 3, .skew = Skew::Linear}, 0).sent,
              ElementsAre(2, 4));
  EXPECT_THAT(counts_of({.collective = Collective::AllGather, .ranks = 2, .count = 3}, 0).received, IsEmpty());
}

TEST(CasesOf, LeavesOutIllegalPairsAndRepeatedSizes) {
  Range range;
  range.sizes = {4, 8, 16, 64};
  range.types = {ccomFloat32, ccomInt32};
  range.reductions = {Reduction::Bxor};
  range.roots = {0, 1};
  range.in_place = {false, true};
  const std::vector<Case> reduces = cases_of(Collective::AllReduce, 4, range);
  EXPECT_EQ(reduces.size(), 8u);  // int32 only, four sizes, two places, no root.
  EXPECT_EQ(reduces.front().type, ccomInt32);
  EXPECT_EQ(cases_of(Collective::Gather, 4, range).size(), 16u);  // 4, 8 and 16 bytes are all one element of each rank.
  EXPECT_EQ(cases_of(Collective::SendRecv, 4, range).size(), 8u);
  EXPECT_EQ(cases_of(Collective::Barrier, 4, range).size(), 1u);
  EXPECT_EQ(cases_of(Collective::ScatterV, 4, range).front().skew, Skew::Linear);
  EXPECT_EQ(cases_of(Collective::Scatter, 4, range).front().skew, Skew::None);
}

// Moves the data as the arrivals of `receiver` say, taking it from the senders' layouts.
void expect_possible(const Case& what) {
  for (int receiver = 0; receiver < what.ranks; ++receiver) {
    const Layout layout = layout_of(what, receiver);
    size_t covered = 0;
    for (const Arrival& arrival : arrivals(what, receiver, 1)) {
      EXPECT_EQ(arrival.offset, covered) << text_of(what);
      covered += arrival.stretch.count;
      const int source = arrival.stretch.source == kEveryRank ? 0 : arrival.stretch.source;
      const Layout sender = layout_of(what, source);
      EXPECT_TRUE(sender.has_send) << text_of(what);
      EXPECT_LE(arrival.stretch.first + arrival.stretch.count, sender.send_count) << text_of(what);
    }
    EXPECT_EQ(covered, layout.has_recv ? layout.recv_count : 0) << text_of(what) << ", rank " << receiver;
  }
}

TEST(Arrivals, CoverTheReceiveBufferFromWhatWasSent) {
  for (Collective collective : all_collectives()) {
    for (int ranks : {1, 2, 5}) {
      for (int root = 0; root < ranks; ++root) {
        if (collective == Collective::Barrier) continue;
        for (const Skew skew : all_skews()) {
          if (skew != Skew::None && !is_v(collective)) continue;
          expect_possible({.collective = collective, .root = root, .ranks = ranks, .count = 6, .skew = skew});
        }
      }
    }
  }
}

}  // namespace
}  // namespace ccom::bench
