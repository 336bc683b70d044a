// SPDX-License-Identifier: Apache-2.0
//
// Ways between ranks without a link: that they are shortest, and proved to arrive and never to wait in a circle; and
// that the proof finds ways that are not so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/rank_routes.h"
#include "topology/wires.h"

namespace ccom {
namespace {

using testing::HasSubstr;

Status prove(const Topology& topology, const RankRoutes& routes) {
  return prove_routes(topology, routes.lanes(), [&](Rank at, Rank to) { return routes.next(at, to); });
}

TEST(RankRoutes, AreProvedOnEveryFabricAndAsLongAsTheWiresWay) {
  for (const char* name :
       {"ring:5", "ring:16", "chain:7", "torus:3x3", "torus:2x2", "torus:4x4", "torus:2x3x4", "torus:8x8",
        "torus:4x4x4", "trn1.32xlarge", "trn2.48xlarge", "trn2-ultraserver/1", "inf2.48xlarge", "2*torus:3x5"}) {
    const Topology topology = *make_topology(name);
    const RankRoutes routes(topology);
    ASSERT_TRUE(routes.are_needed()) << name;
    EXPECT_EQ(routes.lanes(), std::string(name).starts_with("chain") ? 1 : 2) << name;
    const Status proved = prove(topology, routes);
    EXPECT_TRUE(proved.is_ok()) << name << ": " << proved.message();
    const Wires wires(topology);
    for (Rank a = 0; a < topology.nranks(); a += 3) {
      for (Rank b = 0; b < topology.nranks(); b += 2) {
        if (a == b) continue;
        std::vector<uint32_t> path;
        wires.path(a, b, path);
        const bool is_local =
            topology.ranks[static_cast<size_t>(a)].host == topology.ranks[static_cast<size_t>(b)].host;
        EXPECT_EQ(routes.path(a, b).size(), is_local ? path.size() : 1) << name << " " << a << " " << b;
        EXPECT_EQ(routes.path(a, b).back().to, b);
      }
    }
  }
}

TEST(RankRoutes, AreNotNeededWhereAllAreLinked) {
  for (const char* name : {"host:4", "full:5", "switch:6", "ring:3", "torus:4x4+routed", "2*ring:3", "single"}) {
    const Topology topology = *make_topology(name);
    const RankRoutes routes(topology);
    EXPECT_FALSE(routes.are_needed()) << name;
    EXPECT_EQ(routes.lanes(), 0) << name;
  }
}

TEST(RankRoutes, GoRoundDevicesWithoutRanks) {
  const Topology whole = *make_topology("torus:3x3");
  const std::vector<Rank> left{0, 1, 2, 3, 5, 6, 7, 8};  // without the middle
  Topology topology = whole;
  topology.ranks.clear();
  for (const Rank rank : left) {
    topology.ranks.push_back(whole.ranks[static_cast<size_t>(rank)]);
    topology.ranks.back().local = static_cast<int>(topology.ranks.size()) - 1;
  }
  const RankRoutes routes(topology);
  EXPECT_EQ(routes.lanes(), 2);  // two hops at most
  EXPECT_TRUE(prove(topology, routes).is_ok()) << prove(topology, routes).message();
  EXPECT_EQ(RankRoutes(topology, 1).lanes(), 0);  // more than there may be
}

TEST(RankRoutes, WhereADeviceIsCutOffHaveNoWayToIt) {
  Topology topology = *make_topology("chain:4");
  topology.ranks.erase(topology.ranks.begin() + 1);
  for (size_t i = 0; i < topology.ranks.size(); ++i) topology.ranks[i].local = static_cast<int>(i);
  const RankRoutes routes(topology);
  EXPECT_EQ(routes.next(0, 2).to, -1);
  EXPECT_TRUE(routes.path(0, 2).empty());
  EXPECT_EQ(routes.path(1, 2).size(), 1U);
}

// One lane all the way round: pieces that each want to go two places on wait for each other. (In rows of four no two
// ways follow each other all the way round.)
TEST(RankRoutes, OnOneLaneOfARingAreRefuted) {
  for (const char* name : {"ring:5", "torus:4x6", "torus:3x4x5"}) {
    const Topology topology = *make_topology(name);
    const RankRoutes routes(topology);
    const Status refuted = prove_routes(topology, routes.lanes(), [&](Rank at, Rank to) {
      return Hop{routes.next(at, to).to, 0};
    });
    EXPECT_THAT(refuted.message(), HasSubstr("wait for room in a circle")) << name;
  }
}

// Every single hop.
TEST(RankRoutes, ThatAreChangedAreRefutedOrStillProperWays) {
  const Topology topology = *make_topology("ring:8");
  const RankRoutes routes(topology);
  int refuted = 0, circles = 0;
  for (Rank from = 0; from < 8; ++from) {
    for (Rank to = 0; to < 8; ++to) {
      if (from == to) continue;
      const auto changed = [&](Rank at, Rank end) {
        Hop hop = routes.next(at, end);
        if (at == from && end == to) hop.to = (2 * at - hop.to + 8) % 8;  // the other way round
        return hop;
      };
      const Status proved = prove_routes(topology, 2, changed);
      refuted += proved.is_ok() ? 0 : 1;
      circles += proved.message().find("circle") != std::string::npos ? 1 : 0;
    }
  }
  // The other 10 are ways too: as long the other way round, or two hops longer.
  EXPECT_EQ(refuted, 46);
  EXPECT_EQ(circles, 6);
}

TEST(RankRoutes, CutLongMessagesIntoLongPieces) {
  size_t before = 0;
  for (size_t bytes = 1000; bytes < size_t{1} << 32; bytes *= 2) {
    const size_t piece = forwarded_piece_bytes(bytes, 2);
    EXPECT_GE(piece, std::max(before, size_t{16} << 10));
    EXPECT_LE(forwarded_piece_bytes(bytes, 8), piece);
    before = piece;
  }
  EXPECT_EQ(before, kMostPieceBytes);
  EXPECT_EQ(forwarded_piece_bytes(1 << 20, 2), 64U << 10);
}

TEST(RankRoutes, OverMissingLinksOrLanesAreRefuted) {
  const Topology topology = *make_topology("ring:6");
  const RankRoutes routes(topology);
  const auto straight = [](Rank, Rank to) { return Hop{to, 0}; };
  EXPECT_THAT(prove_routes(topology, 2, straight).message(), HasSubstr("does not go along a link"));
  const auto nowhere = [](Rank, Rank) { return Hop{}; };
  EXPECT_THAT(prove_routes(topology, 2, nowhere).message(), HasSubstr("leads nowhere"));
  const auto next = [&](Rank at, Rank to) { return routes.next(at, to); };
  EXPECT_THAT(prove_routes(topology, 1, next).message(), HasSubstr("a lane that does not exist"));
}

}  // namespace
}  // namespace ccom
