// SPDX-License-Identifier: Apache-2.0
//
// Regions of a host's segment over all numbers of ranks and all combinations of what it may hold.
#include "setup/host_segment_layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "liveness/monitor.h"
#include "transports/shm/factory.h"

namespace ccom {
namespace {

constexpr size_t kMemoryBytes = size_t{1} << 30;

std::vector<HostSegmentLayout::Region> regions_of(const HostSegmentLayout& layout) {
  return {layout.board, layout.plan_rings, layout.message_rings, layout.collectives, layout.wires};
}

std::string text_of(const HostSegmentNeeds& needs) {
  return std::to_string(needs.ranks) + " ranks, channels " + std::to_string(needs.plan_channels) + "+" +
         std::to_string(needs.message_channels) + (needs.has_collectives ? ", collectives, " : ", ") +
         std::to_string(needs.wires) + " wires, " + std::to_string(needs.max_memory_bytes) + " bytes";
}

void for_all_needs(const std::function<void(const HostSegmentNeeds&, const HostSegmentLayout&)>& check) {
  for (const int ranks : {1, 2, 3, 5, 8, 31, 64, 192}) {
    for (const int plan_channels : {0, 1, 4, 16}) {
      for (const int message_channels : {0, 2, 4}) {
        for (const bool collectives : {false, true}) {
          for (const uint32_t wires : {0U, 1U, 4000U}) {
            for (const size_t memory : {size_t{1} << 20, kMemoryBytes}) {
              const HostSegmentNeeds needs{ranks, plan_channels, message_channels, collectives, wires, memory};
              SCOPED_TRACE(text_of(needs));
              check(needs, lay_out(needs));
            }
          }
        }
      }
    }
  }
}

TEST(HostSegmentLayout, RegionsAreWholePagesThatDoNotOverlapAndFillTheSegment) {
  for_all_needs([](const HostSegmentNeeds&, const HostSegmentLayout& layout) {
    size_t end = 0, sum = 0;
    for (const HostSegmentLayout::Region& region : regions_of(layout)) {
      EXPECT_EQ(region.offset_bytes % 4096, 0u);
      EXPECT_EQ(region.size_bytes % 4096, 0u);
      EXPECT_GE(region.offset_bytes, end);
      end = region.end_bytes();
      sum += region.size_bytes;
    }
    EXPECT_EQ(layout.size_bytes, end);
    EXPECT_EQ(layout.size_bytes, sum);
  });
}

TEST(HostSegmentLayout, EachRegionHoldsWhatIsPutThere) {
  for_all_needs([](const HostSegmentNeeds& needs, const HostSegmentLayout& layout) {
    const auto rings = [&](int channels, size_t bytes) {
      return channels == 0 ? 0 : shm_region_bytes(needs.ranks, channels, bytes);
    };
    EXPECT_GE(layout.board.size_bytes, Monitor::board_bytes(needs.ranks));
    EXPECT_GE(layout.plan_rings.size_bytes, rings(needs.plan_channels, layout.plan_ring_bytes));
    EXPECT_GE(layout.message_rings.size_bytes, rings(needs.message_channels, layout.message_ring_bytes));
    EXPECT_EQ(layout.plan_rings.size_bytes == 0, needs.plan_channels == 0);
    EXPECT_EQ(layout.collectives.size_bytes, needs.has_collectives ? layout.node.region_bytes() : 0);
    EXPECT_EQ(layout.node.ranks, needs.ranks);
    EXPECT_GE(layout.wires.size_bytes, needs.wires == 0 ? 0 : shm_wires_bytes(needs.wires));
  });
}

TEST(HostSegmentLayout, TakesBoardAndHeadersAtOnceAndNoRing) {
  for_all_needs([](const HostSegmentNeeds& needs, const HostSegmentLayout& layout) {
    EXPECT_GE(layout.reserve_bytes, layout.board.end_bytes());
    EXPECT_LE(layout.reserve_bytes, layout.plan_rings.end_bytes());
    if (needs.plan_channels == 0) return;
    EXPECT_EQ(layout.reserve_bytes - layout.board.end_bytes(), shm_header_bytes(needs.ranks, needs.plan_channels));
  });
}

TEST(HostSegmentLayout, GrowsWithTheRanks) {
  HostSegmentNeeds needs{1, 1, 2, true, 0, kMemoryBytes};
  HostSegmentLayout before = lay_out(needs);
  for (needs.ranks = 2; needs.ranks <= 64; ++needs.ranks) {
    const HostSegmentLayout now = lay_out(needs);
    EXPECT_GE(now.board.size_bytes, before.board.size_bytes) << needs.ranks;
    EXPECT_GT(now.plan_rings.size_bytes, before.plan_rings.size_bytes) << needs.ranks;
    EXPECT_GT(now.message_rings.size_bytes, before.message_rings.size_bytes) << needs.ranks;
    EXPECT_GT(now.collectives.size_bytes, static_cast<size_t>(needs.ranks) * 2 * now.node.bank_bytes) << needs.ranks;
    EXPECT_GT(now.size_bytes, before.size_bytes) << needs.ranks;
    before = now;
  }
}

TEST(HostSegmentLayout, StagingOfARankStaysBelowAnEighthOfItsMemoryWhereThatIsPossible) {
  for (const size_t memory : {size_t{4} << 20, size_t{16} << 20, kMemoryBytes}) {
    for (const int ranks : {2, 8, 64}) {
      const HostSegmentLayout layout = lay_out({ranks, 1, 0, true, 0, memory});
      EXPECT_LE(layout.node.staging_bytes(), memory / 8) << ranks << " ranks, " << memory << " bytes";
      EXPECT_EQ(layout.node.bank_bytes % 4096, 0u);
    }
  }
  EXPECT_LT(lay_out({8, 1, 0, true, 0, size_t{4} << 20}).node.bank_bytes,
            lay_out({8, 1, 0, true, 0, kMemoryBytes}).node.bank_bytes);
}

Topology hosts_of(const std::vector<int>& sizes, const std::string& fabric) {
  std::vector<RankView> views;
  for (size_t host = 0; host < sizes.size(); ++host) {
    Host described;
    described.id = std::to_string(host);
    if (!fabric.empty()) described.imposed = *make_fabric(fabric);
    views.insert(views.end(), static_cast<size_t>(sizes[host]), RankView{described});
  }
  return *merge(views);
}

TEST(HostSegmentNeeds, AreTheSameOnAllRanksOfAHost) {
  CommConfig messages, emulated;
  messages.messages = true;
  emulated.emulate_scale = 1e-3;
  for (const auto& [config, topology] :
       {std::pair(CommConfig(), hosts_of({4}, "")), std::pair(messages, hosts_of({1, 4, 3}, "")),
        std::pair(emulated, hosts_of({4}, "ring:4"))}) {
    const std::vector<int> channels(topology.ranks.size(), 3);
    for (size_t rank = 1; rank < topology.ranks.size(); ++rank) {
      if (topology.ranks[rank].host != topology.ranks[rank - 1].host) continue;
      EXPECT_EQ(segment_needs(config, topology, topology, static_cast<Rank>(rank), channels),
                segment_needs(config, topology, topology, static_cast<Rank>(rank) - 1, channels));
    }
  }
}

TEST(HostSegmentNeeds, FollowTransportsAndFabric) {
  CommConfig config;
  config.max_memory = int64_t{1} << 30;
  config.messages = true;
  const Topology plain = hosts_of({3, 1}, "");
  const std::vector<int> channels{9, 2, 3, 8};
  EXPECT_EQ(segment_needs(config, plain, plain, 0, channels), (HostSegmentNeeds{3, 3, 2, true, 0, kMemoryBytes}));
  EXPECT_EQ(segment_needs(config, plain, plain, 3, channels), (HostSegmentNeeds{1, 0, 0, false, 0, kMemoryBytes}));
  config.transports = {"tcp", "shm"};
  EXPECT_EQ(segment_needs(config, plain, plain, 0, channels), (HostSegmentNeeds{3, 0, 0, false, 0, kMemoryBytes}));
  config.transports = {"shm"};
  config.messages = false;
  config.emulate_scale = 0.5;
  const Topology ring = hosts_of({4}, "ring:4");
  const HostSegmentNeeds imposed = segment_needs(config, ring, ring, 1, {1, 1, 1, 1});
  EXPECT_FALSE(imposed.has_collectives);
  EXPECT_GT(imposed.wires, 0u);
}

}  // namespace
}  // namespace ccom
