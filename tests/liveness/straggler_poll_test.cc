// SPDX-License-Identifier: Apache-2.0
//
// The straggler poll: whatever rank asks, every host of the tree learns who is furthest behind and whether calls of
// equal number differ; what travels survives its encoding and nothing else does.
#include "liveness/straggler_poll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>

#include "liveness/state.h"
#include "liveness/straggler_watch.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CallDescriptor call(uint64_t number, uint64_t count = 1, Rank root = -1) {
  return {number, count, kind_of(Collective::AllReduce, DataType::Float32, ReduceOp::Sum, false, root)};
}

TEST(StragglerReport, TheFewestCallsWinAndEqualsAreUnited) {
  const StragglerReport slow{3, {1, 5}}, slower{2, {7}}, also{3, {0, 5}};
  EXPECT_EQ(merge(slow, slower), slower);
  EXPECT_EQ(merge(slower, slow), slower);
  EXPECT_EQ(merge(slow, also), (StragglerReport{3, {0, 1, 5}}));
  EXPECT_EQ(merge(StragglerReport(), slow), slow);
  StragglerReport many{0, {}};
  for (Rank rank = 0; rank < 100; ++rank) many = merge(many, {0, {rank}});
  EXPECT_EQ(many.ranks.size(), StragglerReport::kMost);
}

TEST(StragglerReport, EqualCallsAreKeptOnceAndTwoDifferentOnesOfANumber) {
  StragglerReport all;
  for (Rank rank = 9; rank >= 0; --rank) {
    const uint64_t count = rank == 4 ? 2 : rank == 6 ? 3 : 1;
    all = merge(all, {6, {rank}, false, {{call(5), rank}, {call(6, count), rank}}});
  }
  const BegunCall usual{call(6), 0, 8}, odd{call(6, 2), 4};
  EXPECT_THAT(all.begun, ElementsAre(BegunCall{call(5), 0, 10}, usual, odd));
  EXPECT_EQ(all.find_difference(), std::pair(usual, odd));
  EXPECT_EQ((StragglerReport{6, {0}, false, {{call(5), 0}, {call(6), 0}}}).find_difference(), std::nullopt)
      << "calls of different numbers may differ";
}

// Results that must be equal: those of most ranks are right, which is known once all have come.
TEST(StragglerReport, TellsWhoseResultsAreNotThoseOfMostRanks) {
  constexpr Rank kRanks = 7, kOdd = 3;
  StragglerReport all;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    CallDescriptor second = call(6);
    second.results = rank == kOdd ? 5 : 4;
    EXPECT_EQ(difference_error(all, kRanks), std::nullopt) << rank;
    all = merge(all, {6, {rank}, false, {{call(5), rank}, {second, rank}}});
  }
  const std::optional<Status> found = difference_error(all, kRanks);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key(), ErrorKey::ResultsDiffer);
  EXPECT_THAT(found->peers(), ElementsAre(kOdd));
  EXPECT_THAT(found->message(), ::testing::HasSubstr("those of rank 3 from those of the 6 other ranks"));
  EXPECT_THAT(found->message(), ::testing::HasSubstr("(call 5)"));
}

// So that every host comes to the same result, whatever it has heard first.
TEST(StragglerReport, TheOrderOfMergingDoesNotMatter) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<StragglerReport> reports;
    for (Rank rank = 0; rank < 12; ++rank) {
      StragglerReport own{20 + random() % 20, {rank}};
      for (uint64_t number = own.calls - 7; number <= own.calls; ++number)
        own.begun.push_back({call(number, 1 + random() % 3), rank});
      reports.push_back(own);
    }
    const auto merge_all = [&reports] {
      StragglerReport all;
      for (const StragglerReport& report : reports) all = merge(all, report);
      return all;
    };
    const StragglerReport all = merge_all();
    EXPECT_LE(all.begun.size(), StragglerReport::kMostBegun);
    std::ranges::shuffle(reports, random);
    EXPECT_EQ(merge_all(), all);
    const auto half = reports.begin() + 6;
    StragglerReport first, second;
    for (auto it = reports.begin(); it != half; ++it) first = merge(first, *it);
    for (auto it = half; it != reports.end(); ++it) second = merge(second, *it);
    EXPECT_EQ(merge(first, second), all);
  }
}

TEST(StragglerReport, TravelsAndIsRefusedDamaged) {
  const StragglerReport behind{uint64_t{1} << 40, {0, 3, 10000}, true, {{call(7), 0}, {call(8, 1, 2), 10000}}};
  const std::vector<std::byte> bytes = encode_report(behind, 0);
  EXPECT_EQ(decode_report(bytes, 0), behind);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = decode_report(ConstBytes(bytes).first(size), 0);
    EXPECT_TRUE(!cut || *cut != behind) << size;
  }
  StragglerReport long_one;
  long_one.begun.resize(StragglerReport::kMostBegun);
  EXPECT_TRUE(decode_report(encode_report(long_one, 0), 0));
  long_one.begun.emplace_back();
  EXPECT_FALSE(decode_report(encode_report(long_one, 0), 0));
  StragglerReport with_activities = behind;
  with_activities.asks_places = true;
  with_activities.activities = table_of({{.rank = 3, .site = "train.py:7 (step)", .seconds = 4}}, 0);
  EXPECT_EQ(decode_report(encode_report(with_activities, 0), 0), with_activities);
  StragglerReport unsorted = behind;
  std::ranges::reverse(unsorted.begun);
  EXPECT_FALSE(decode_report(encode_report(unsorted, 0), 0));
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
    drive(3, [&](TreeState& state, TreeOutputs& out) { state.poll_stragglers(own(3), true, out); });
    while (!wire.empty()) {
      const Parcel parcel = wire.front();
      wire.erase(wire.begin());
      ++messages;
      drive(parcel.to, [&](TreeState& state, TreeOutputs& out) { state.receive(parcel.from, parcel.message, 0, out); });
      drive(parcel.to, [&](TreeState& state, TreeOutputs& out) {
        if (state.straggler_poll().is_on()) state.poll_stragglers(own(parcel.to), true, out);
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
  test::ConnectedCluster cluster({2, 2, 1});
  for (Rank rank = 0; rank < 5; ++rank)
    for (uint64_t number = 1; number <= (rank == 1 ? 4 : 5); ++number) cluster[rank].begin_call(call(number));
  EXPECT_THAT(cluster[2].find_stragglers(), ElementsAre(1));
  cluster[1].begin_call(call(5));
  EXPECT_THAT(cluster[4].find_stragglers(), IsEmpty()) << "everybody is in the call now";
}

TEST(StragglerPoll, TakesNoTimeOnOneHost) {
  test::ConnectedCluster cluster({3});
  cluster[0].begin_call(call(1));
  EXPECT_THAT(cluster[0].find_stragglers(), ElementsAre(1, 2));
  EXPECT_THAT(cluster[1].find_stragglers(), IsEmpty());
}

// Rank 3's call 2 has another root; it has gone on to call 4. Rank 1, who asks, has made neither call that differs.
TEST(CallComparison, TellsAllRanksOfAllHostsBothCalls) {
  for (const std::vector<int>& layout : {std::vector{4}, {2, 2}, {1, 1, 1, 1}, {3, 1}}) {
    test::ConnectedCluster cluster(layout);
    for (uint64_t number = 1; number <= 4; ++number) {
      cluster[3].begin_call(call(number, 1, number == 2 ? 1 : 0));
      if (number <= 2) cluster[0].begin_call(call(number, 1, 0));
      if (number <= 1) cluster[1].begin_call(call(number, 1, 0));
    }
    cluster[1].compare_calls();
    ASSERT_TRUE(cluster.all_fail(10000));
    for (Rank rank = 0; rank < 4; ++rank) {
      const Status status = cluster[rank].status();
      EXPECT_EQ(status.code(), Code::Mismatch);
      EXPECT_TRUE(
          status.message().starts_with("ranks made different calls: rank 0: allreduce float32 sum count 1 root 0 "
                                       "(call 2); rank 3: allreduce float32 sum count 1 root 1 (call 2)"))
          << status.message();
      EXPECT_EQ(status.message(), cluster[0].status().message());
      EXPECT_EQ(status.peers(), (std::vector<int>{0, 3}));
      EXPECT_THAT(status.message(), HasSubstr("in allreduce #4")) << "what the ranks do is said too";
    }
  }
}

TEST(CallComparison, EqualCallsAreNoErrorHoweverFarApart) {
  test::ConnectedCluster cluster({2, 1, 1});
  for (uint64_t number = 1; number <= 100; ++number) {
    for (Rank rank = 0; rank < 4; ++rank)
      if (number <= 25 * static_cast<uint64_t>(rank + 1)) cluster[rank].begin_call(call(number, number % 3));
  }
  for (int time = 0; time < 5; ++time) {
    for (Rank rank = 0; rank < 4; ++rank) cluster[rank].compare_calls();
    EXPECT_THAT(cluster[3].find_stragglers(), ElementsAre(0));
  }
  for (Rank rank = 0; rank < 4; ++rank) {
    cluster[rank].end_comparison();
    EXPECT_TRUE(cluster[rank].status().is_ok());
  }
}

// The reader meets every state of the writer.
TEST(CallRecord, IsNeverReadHalfWritten) {
  const auto record = std::make_unique<CallRecord>();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t number = 1; !stop; ++number) record->begin({number, number * 3, number * 5});
  });
  // On a busy machine only one of the two may run for some time.
  uint64_t found = 0;
  for (const Deadline deadline = Deadline::after_ms(60000); found < 1'000'000 && !deadline.passed();) {
    const uint64_t last = record->begun.load();
    for (uint64_t back = 0; back < CallRecord::kKept && back < last; ++back) {
      const auto seen = record->find(last - back);
      if (!seen) continue;
      ++found;
      EXPECT_EQ(*seen, (CallDescriptor{last - back, (last - back) * 3, (last - back) * 5}));
    }
  }
  stop = true;
  writer.join();
  EXPECT_GT(found, 0U);
  const uint64_t last = record->begun.load();
  EXPECT_EQ(record->find(last + 1), std::nullopt);
  EXPECT_EQ(record->last(), (CallDescriptor{last, last * 3, last * 5}));
}

}  // namespace
}  // namespace ccom
