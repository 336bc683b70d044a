// SPDX-License-Identifier: Apache-2.0
//
// Deaths through the control tree of production: everybody learns, of the right rank, in a time that the tree's depth
// and the network's latency allow.
#include "sim/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "liveness/state.h"

namespace ccom {
namespace {

TEST(Failure, EveryHostLearnsWhoDiedWithinTheTreesDepth) {
  const Topology cluster = *make_topology("640*trn2.48xlarge/1");
  const Faults::Death death{16 * 100 + 3, 1e6};
  const DeathNotice notice;
  const std::vector<HostNotice> notices = survive(cluster, death, notice);
  ASSERT_EQ(notices.size(), 640u);
  double last = 0;
  for (const HostNotice& host : notices) {
    ASSERT_GE(host.time_ns, death.at_ns + notice.to_mates_ns);
    EXPECT_THAT(host.error.peers(), testing::ElementsAre(death.rank));
    last = std::max(last, host.time_ns);
  }
  // Host 100 to the root and down to a leaf: 640 hosts are four levels of degree eight, 15 us each.
  // The root decides.
  EXPECT_LE(last, death.at_ns + notice.to_mates_ns + kSettleNs + 2 * 4 * 15000);
}

TEST(Failure, OfARankAloneOnItsHostIsSeenByItsNeighbours) {
  const Topology cluster = *make_topology("9*trn2.3xlarge/1");
  const DeathNotice notice;
  const std::vector<HostNotice> notices = survive(cluster, {4, 0}, notice);
  for (int host = 0; host < 9; ++host) {
    if (host == 4) {
      EXPECT_LT(notices[4].time_ns, 0);  // nobody is left there
    } else {
      EXPECT_GE(notices[static_cast<size_t>(host)].time_ns, notice.to_connections_ns);
      EXPECT_THAT(notices[static_cast<size_t>(host)].error.peers(), testing::ElementsAre(4));
    }
  }
}

}  // namespace
}  // namespace ccom
