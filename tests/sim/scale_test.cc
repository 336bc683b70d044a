// SPDX-License-Identifier: Apache-2.0
//
// What docs/scale.md says of clusters of 1,024 ranks: how far from their lower bounds collectives whose units belong to
// ranks are at 256 MiB; one host that stands for all against all hosts; and alltoall within 1.3 times its bound on
// fabrics whose devices do not forward.
#include <gtest/gtest.h>

#include "planner/bound.h"
#include "tools/sim/cases.h"

namespace ccom::simtool {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// The choice's simulated time over the bound; in *by_price over the expected time.
double times_bound(const std::string& machine, Collective collective, size_t bytes, bool fold = true,
                   double* by_price = nullptr) {
  const Topology topology = *make_topology(machine);
  Case what;
  what.collective = collective;
  what.bytes = bytes;
  const auto outcome = simulate_case(topology, what, {}, fold);
  EXPECT_TRUE(outcome) << outcome.error().message();
  if (!outcome) return 0;
  const double ratio = outcome->report.time_ns / outcome->bound.time_ns();
  std::printf("%s %s: %.3f by %s\n", machine.c_str(), std::string(name_of(collective)).c_str(), ratio,
              outcome->program.algorithm.c_str());
  if (by_price != nullptr) *by_price = outcome->report.time_ns / outcome->expected_ns;
  return ratio;
}

TEST(Scale, AllToAllIsNearTheBisectionWhereDevicesDoNotForward) {
  for (const char* const machine : {"torus:4x4", "torus:8x8", "torus:4x4x4", "ring:16"}) {
    EXPECT_LE(times_bound(machine, Collective::AllToAll, 64 * kMiB), 1.3) << machine;
  }
}

TEST(Scale, UnitsOfRanksTravelTogetherOnClusters) {
  for (const char* const machine : {"64*trn1.32xlarge/1", "64*trn2.48xlarge/1"}) {
    for (const Collective collective : {Collective::AllGather, Collective::ReduceScatter, Collective::Gather,
                                        Collective::Scatter, Collective::AllToAll}) {
      EXPECT_LE(times_bound(machine, collective, 256 * kMiB), 1.5) << machine << " " << name_of(collective);
    }
  }
}

// Few messages on the cards: rings of both ways at once have half as many streams, small radices few peers.
TEST(Scale, CardsAreNotBusyWithMessages) {
  for (const char* const machine : {"4*trn2.48xlarge", "256*trn2.48xlarge/1", "16*trn2-ultraserver/1"}) {
    for (const Collective collective : {Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce}) {
      double by_price = 0;
      EXPECT_LE(times_bound(machine, collective, 256 * kMiB, true, &by_price), 1.5) << machine;
      EXPECT_NEAR(by_price, 1, 0.15) << machine << " " << name_of(collective);
    }
  }
}

// All of the root's links at work, whatever their speed, with what is first there first; the price says so too.
TEST(Scale, PartsOfRanksComeOverAllLinksOfTheRoot) {
  for (const char* const machine : {"trn1.32xlarge", "trn2.48xlarge", "trn2-ultraserver/1", "4*trn2.48xlarge",
                                    "16*trn2-ultraserver/1", "64*trn2.48xlarge/1"}) {
    for (const Collective collective : {Collective::Gather, Collective::Scatter}) {
      double by_price = 0;
      EXPECT_LE(times_bound(machine, collective, 256 * kMiB, true, &by_price), 1.15) << machine;
      EXPECT_NEAR(by_price, 1, 0.1) << machine << " " << name_of(collective);
    }
  }
}

// The root's trees begin at once: none waits until another one's data have gone.
TEST(Scale, TreesOfABroadcastShareTheRootsWires) {
  for (const char* const machine : {"16*trn1.32xlarge/1", "16*trn2.48xlarge/1", "3*p5.48xlarge/1", "trn1.32xlarge",
                                    "trn2.48xlarge", "trn2-ultraserver/1", "4*trn2-ultraserver/1"}) {
    double by_price = 0;
    EXPECT_LE(times_bound(machine, Collective::Broadcast, 256 * kMiB, true, &by_price), 1.35) << machine;
    EXPECT_NEAR(by_price, 1, 0.1) << machine;
  }
}

// Ranks send what is due first, so that leaves of one tree do not hold up the others: nearly as a broadcast, but where
// one dimension is slower, for a broadcast has other trees there.
TEST(Scale, TreesOfAReduceShareTheWiresAsThoseOfABroadcast) {
  for (const char* const machine : {"16*trn1.32xlarge/1", "16*trn2.48xlarge/1", "3*p5.48xlarge/1"}) {
    const double broadcast = times_bound(machine, Collective::Broadcast, 256 * kMiB);
    EXPECT_LE(times_bound(machine, Collective::Reduce, 256 * kMiB), 1.15 * broadcast) << machine;
  }
  EXPECT_LE(times_bound("trn2-ultraserver/1", Collective::Reduce, 256 * kMiB), 1.9);
}

// Up to the order in which messages of one instant enter a wire: 2.2 % for the allgather, nothing for the others.
TEST(Scale, OneHostStandsForAllWhereUnitsTravelTogether) {
  const char* const machine = "16*trn1.32xlarge/1";
  for (const Collective collective : {Collective::AllGather, Collective::ReduceScatter, Collective::AllToAll}) {
    const double folded = times_bound(machine, collective, 64 * kMiB, true);
    EXPECT_NEAR(times_bound(machine, collective, 64 * kMiB, false), folded, folded / 20) << name_of(collective);
  }
}

}  // namespace
}  // namespace ccom::simtool
