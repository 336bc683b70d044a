// SPDX-License-Identifier: Apache-2.0
//
// The straggler poll: whatever rank asks, every host of the tree learns who is furthest behind, and what is behind whom
// changes while the call is on; what travels survives its encoding and nothing else does.
#include "liveness/straggler_poll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "liveness/state.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(StragglerReport, TheFewestCallsWinAndEqualsAreUnited) {
  const StragglerReport slow{3, {1, 5}}, slower{2, {7}}, also{3, {0, 5}};
  EXPECT_EQ(least_of(slow, slower), slower);
  EXPECT_EQ(least_of(slower, slow), slower);
  EXPECT_EQ(least_of(slow, also), (StragglerReport{3, {0, 1, 5}}));
  EXPECT_EQ(least_of(StragglerReport(), slow), slow);
  StragglerReport many{0, {}};
  for (Rank rank = 0; rank < 100; ++rank) many = least_of(many, {0, {rank}});
  EXPECT_EQ(many.ranks.size(), StragglerReport::kMost);
}

TEST(StragglerReport, TravelsAndIsRefusedDamaged) {
  const StragglerReport behind{uint64_t{1} << 40, {0, 3, 10000}, true};
  const std::vector<std::byte> bytes = encode_report(behind);
  EXPECT_EQ(decode_report(bytes), behind);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode_report(ConstBytes(bytes).first(size));
    EXPECT_TRUE(!cut || *cut != behind) << size;
  }
  EXPECT_FALSE(decode_report(std::vector<std::byte>(8 + 4 * (StragglerReport::kMost + 1))));
}

// 80 hosts are three levels. Everybody is in call 7 but host 77, and the asker is host 3; messages are delivered until
// there are none left.
TEST(StragglerPoll, EveryHostOfTheTreeLearnsWhoIsFurthestBehind) {
  constexpr int kHosts = 80;
  TreeConfig config{.hosts = {}, .self = 0, .dead_ns = 1'000'000'000};
  for (int h = 0; h < kHosts; ++h) config.hosts.push_back({"host" + std::to_string(h), h, {h}});
  std::vector<TreeState> states;
  for (int h = 0; h < kHosts; ++h) {
    config.self = h;
    states.emplace_back(config);
  }
  struct Parcel {
    int from, to;
    ControlMessage message;
  };
  std::vector<Parcel> wire;
  size_t messages = 0;
  const auto drive = [&](int host, auto input) {
    TreeOutputs outputs;
    input(states[static_cast<size_t>(host)], outputs);
    for (const TreeOutput& output : outputs)
      if (output.kind == TreeOutput::Kind::Send) wire.push_back({host, output.host, output.message});
  };
  for (int h = 0; h < kHosts; ++h)
    for (int other : tree_neighbours(h, kHosts))
      drive(h, [&](TreeState& state, TreeOutputs& out) { state.attach(other, 0, out); });
  bool is_asked_for = true;
  const auto own = [&](int host) { return StragglerReport{host == 77 ? 6U : 7U, {host}, host == 3 && is_asked_for}; };
  const auto deliver_all = [&] {
    drive(3, [&](TreeState& state, TreeOutputs& out) { state.poll_stragglers(own(3), out); });
    while (!wire.empty()) {
      const Parcel parcel = wire.front();
      wire.erase(wire.begin());
      ++messages;
      drive(parcel.to, [&](TreeState& state, TreeOutputs& out) { state.receive(parcel.from, parcel.message, 0, out); });
      drive(parcel.to, [&](TreeState& state, TreeOutputs& out) {
        if (state.straggler_poll().is_on()) state.poll_stragglers(own(parcel.to), out);
      });
    }
  };
  deliver_all();
  for (int h = 0; h < kHosts; ++h) {
    EXPECT_EQ(states[static_cast<size_t>(h)].straggler_poll().result(), (StragglerReport{6, {77}, true}))
        << "host " << h;
  }
  EXPECT_LT(messages, 50U * kHosts);

  // When host 3 asks no more, the poll ends everywhere, and can begin again.
  is_asked_for = false;
  deliver_all();
  for (const TreeState& state : states) EXPECT_FALSE(state.straggler_poll().is_on());
  is_asked_for = true;
  deliver_all();
  EXPECT_EQ(states[50].straggler_poll().result(), (StragglerReport{6, {77}, true}));
}

TEST(StragglerPoll, NamesTheRankThatOthersWaitForAcrossHosts) {
  test::Cluster cluster({2, 2, 1});
  ASSERT_TRUE(cluster.connect().is_ok());
  for (Rank rank = 0; rank < 5; ++rank) cluster[rank].begin_call(rank == 1 ? 4 : 5, Collective::Barrier);
  EXPECT_THAT(cluster[2].find_stragglers(), ElementsAre(1));
  cluster[1].begin_call(5, Collective::Barrier);
  EXPECT_THAT(cluster[4].find_stragglers(), IsEmpty()) << "everybody is in the call now";
}

TEST(StragglerPoll, TakesNoTimeOnOneHost) {
  test::Cluster cluster({3});
  ASSERT_TRUE(cluster.connect().is_ok());
  cluster[0].begin_call(1, Collective::Barrier);
  EXPECT_THAT(cluster[0].find_stragglers(), ElementsAre(1, 2));
  EXPECT_THAT(cluster[1].find_stragglers(), IsEmpty());
}

}  // namespace
}  // namespace ccom
