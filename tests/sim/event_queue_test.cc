// SPDX-License-Identifier: Apache-2.0
//
// The radix heap gives what a sorted list would, and the same in every run.
#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <queue>
#include <random>

namespace ccom {
namespace {

// Random times, added before and between taking, against a standard queue.
TEST(EventQueue, GivesEventsInOrderOfTime) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    EventQueue queue;
    std::priority_queue<SimTime, std::vector<SimTime>, std::greater<>> expected;
    SimTime now = 0;
    for (int i = 0; i < 5000; ++i) {
      const bool adds = expected.empty() || random() % 5 < 3;
      if (adds) {
        const SimTime time = now + (random() % 4 == 0 ? 0 : random() >> (random() % 60));
        if (time < now) continue;  // wrapped around
        queue.add({time, 0, static_cast<uint32_t>(i)});
        expected.push(time);
        continue;
      }
      ASSERT_FALSE(queue.empty());
      now = expected.top();
      expected.pop();
      ASSERT_EQ(queue.take().time, now) << "seed " << seed;
    }
    while (!expected.empty()) {
      ASSERT_EQ(queue.take().time, expected.top());
      expected.pop();
    }
    EXPECT_TRUE(queue.empty());
  }
}

// Also of those that are added while entries of their time are taken, and of those that have been in many buckets.
TEST(EventQueue, TakesEntriesOfEqualTimeInTheOrderOfTheirComing) {
  std::mt19937 random(7);
  EventQueue queue;
  uint32_t added = 0;
  std::pair<SimTime, uint32_t> last{0, 0};
  while (added < 20000 || !queue.empty()) {
    for (uint32_t i = random() % 3; i > 0 && added < 20000; --i)
      queue.add({last.first + random() % 4 * 1000, 0, ++added});
    if (queue.empty()) continue;
    const ClockEvent event = queue.take();
    ASSERT_GT(std::pair(event.time, event.subject), last);
    last = {event.time, event.subject};
  }
}

}  // namespace
}  // namespace ccom
