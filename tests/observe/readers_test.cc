// SPDX-License-Identifier: Apache-2.0
//
// Nobody who reads beside the writer sees a mixture of two calls.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/text.h"
#include "observe/activity_pulse.h"
#include "observe/activity_writer.h"
#include "observe/rank_activity.h"

namespace ccom {
namespace {

using State = RankActivity::State;

constexpr uint64_t kCalls = 30000;
constexpr int kSeen = 100;  // calls that readers are to find
constexpr int kSites = 40;  // more than a table has

// Everything follows from the number of a call.
Collective collective_of(uint64_t number) { return static_cast<Collective>(number % 8); }
uint64_t kind_at(uint64_t number) {
  return kind_of(collective_of(number), DataType::Float32, ReduceOp::Sum, false, static_cast<Rank>(number % 50));
}
std::string site_at(uint64_t number) { return "site " + std::to_string(number % kSites); }
std::string algorithm_at(uint64_t number) { return "algorithm " + std::to_string(number % 3); }
Rank peer_at(uint64_t number) { return static_cast<Rank>(number % 1000); }

void make_call(ActivityWriter& writer, uint64_t number) {
  set_call_site(site_at(number));
  writer.begin({number, number * 3, kind_at(number)}, call_site(nullptr), number % 5 == 0 ? 1 << 20 : 8);
  writer.set_algorithm(algorithm_at(number), hash_of_text(algorithm_at(number)));
  if (number % 2 == 0) {
    writer.begin_wait(peer_at(number), Clock::now());
    writer.end_wait();
  }
  writer.end();
}

void check(const RankActivity& activity) {
  const uint64_t number = activity.call.number;
  if (number == 0 || activity.call.kind == 0) return;  // its place was taken by later calls
  ASSERT_EQ(activity.call.count, number * 3);
  ASSERT_EQ(activity.call.kind, kind_at(number)) << number;
  ASSERT_TRUE(activity.site.empty() || activity.site == site_at(number)) << activity.site;
  ASSERT_TRUE(activity.algorithm.empty() || activity.algorithm == algorithm_at(number)) << activity.algorithm;
  if (activity.waits_for < 0) return;
  ASSERT_EQ(activity.state, State::InCall);
  ASSERT_EQ(activity.waits_for, peer_at(number)) << "of another call";
  ASSERT_LT(activity.waited, 60) << "since another call";
}

TEST(Readers, SeeNoMixtureOfTwoCalls) {
  const auto record = std::make_unique<ActivityRecord>();
  std::atomic<bool> is_over{false};
  std::atomic<int> in_call{0}, waiting{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      for (uint64_t last = 0; !is_over.load();) {
        const RankActivity activity = read_activity(*record, monotonic_ns(), false);
        check(activity);
        ASSERT_GE(activity.call.number, last);
        last = activity.call.number;
        if (activity.state == State::InCall) ++in_call;
        if (activity.waits_for >= 0) ++waiting;
        const CallTotals totals = totals_of(record->counters);
        for (const CallTotals::WaitedFor& of : totals.waited_for) {
          ASSERT_EQ(of.rank, peer_at(of.longest_call)) << "the longest wait is one for another rank";
          ASSERT_EQ(of.collective, collective_of(of.longest_call));
          ASSERT_LE(of.place_waits, of.waits);
        }
      }
    });
  }
  ActivityWriter writer(*record);
  ActivityPulse pulse(*record);
  std::thread liveness([&] {
    while (!is_over.load()) pulse.beat(monotonic_ns());
  });
  uint64_t made = 0;
  while (made < kCalls || (in_call.load() < kSeen && made < 100 * kCalls)) make_call(writer, ++made);
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  liveness.join();
  set_call_site("");
  EXPECT_GE(in_call.load(), kSeen);
  uint64_t calls = 0;
  for (const CallTotals::Of& of : totals_of(record->counters).calls) calls += of.calls;
  EXPECT_EQ(calls, made);
}

}  // namespace
}  // namespace ccom
