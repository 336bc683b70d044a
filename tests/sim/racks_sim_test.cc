// SPDX-License-Identifier: Apache-2.0
//
// Racks on the clock: what a message between two of them takes; that their uplinks are shared; that hosts in racks do
// not stand for one another; and that where racks make far partners dear, the simulator says the same as the prices.
#include <gtest/gtest.h>

#include "planner/planner.h"
#include "sim/simulator.h"

namespace ccom {
namespace {

double time_of(const Topology& topology, Collective collective, const std::string& algorithm, size_t bytes) {
  const Rank root = is_rooted(collective) ? 0 : -1;
  const Result<Choice> choice = choose(topology, {.forced = algorithm}, {collective, bytes, false, root});
  EXPECT_TRUE(choice) << choice.error().message();
  Program program = choice->program();
  program.tile_bytes = 0;
  const size_t unit = bytes / largest_units(collective, topology.nranks());
  const Result<SimReport> report = simulate_program(topology, program, {.unit_bytes = unit});
  EXPECT_TRUE(report) << report.error().message();
  return report->time_ns;
}

// Two racks of two hosts with cards of 1 GB/s and a taper of 4: their uplinks carry half of a card.
TEST(SimulatedRacks, ShareTheirUplinks) {
  const Topology racks = *make_topology("4*host:1@8Gbit+racks:2/4"), flat = *make_topology("4*host:1@8Gbit");
  const size_t bytes = size_t{1} << 20;
  const double ns = static_cast<double>(bytes);
  // Rank 0 sends to 1, 2 and 3; two of the messages pass the rack's way out, which takes twice as long as the card.
  const double star = time_of(racks, Collective::Broadcast, "star", bytes);
  EXPECT_GT(star, 4 * ns);
  EXPECT_LT(star, 5.1 * ns);
  EXPECT_LT(time_of(flat, Collective::Broadcast, "star", bytes), 3.2 * ns);
}

TEST(SimulatedRacks, AreNotFolded) {
  const Topology racks = *make_topology("4*host:1+racks:2/4");
  const Result<Choice> choice = choose(racks, {.forced = "ring"}, {Collective::AllReduce, 4096});
  ASSERT_TRUE(choice);
  const Result<SimReport> report = simulate_program(racks, choice->program(), {.unit_bytes = 4096, .fold_hosts = true});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code(), Code::NotSupported);
}

TEST(SimulatedRacks, MakeFarPartnersDear) {
  const Topology racks = *make_topology("64*host:1@10Gbit+racks:16/4");
  for (const size_t bytes : {size_t{256} << 10, size_t{1} << 20}) {
    const double bine = time_of(racks, Collective::AllReduce, "bine", bytes);
    EXPECT_LT(1.5 * bine, time_of(racks, Collective::AllReduce, "circulant", bytes)) << bytes;
    EXPECT_LT(bine, time_of(racks, Collective::AllReduce, "two_shot", bytes)) << bytes;
    EXPECT_LT(bine, time_of(racks, Collective::AllReduce, "ring", bytes)) << bytes;
  }
  const Topology uneven = *make_topology("64*host:1@10Gbit+racks:12/4");
  EXPECT_LT(time_of(uneven, Collective::AllToAll, "bine", 1 << 16),
            time_of(uneven, Collective::AllToAll, "bruck", 1 << 16));
}

// Trees send to the largest subtree first: six rounds of one message each for 64 ranks, however they are numbered.
TEST(SimulatedTrees, AreDoneInAsManyRoundsAsTheyAreDeep) {
  const Topology flat = *make_topology("64*host:1@10Gbit");
  for (const char* name : {"binomial", "bine"}) {
    const double least = time_of(flat, Collective::Broadcast, name, 8);
    for (const size_t bytes : {size_t{4} << 10, size_t{64} << 10}) {
      const double message = static_cast<double>(bytes) / flat.network.bytes_per_second * 1e9;
      EXPECT_LE(time_of(flat, Collective::Broadcast, name, bytes), least + 6.1 * message) << name;
    }
  }
}

}  // namespace
}  // namespace ccom
