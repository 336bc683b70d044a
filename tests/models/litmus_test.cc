// SPDX-License-Identifier: Apache-2.0
//
// The explorer itself: programs of a few lines whose possible results are known, from Batty et al., "Mathematizing C++
// Concurrency" (POPL 2011), and Lahav et al., "Repairing Sequential Consistency in C/C++11" (PLDI 2017).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "explorer.h"

namespace ccom::model {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Results = std::vector<int>;
using enum std::memory_order;

struct Objects {
  std::atomic<int> x, y;
  int data, more;
};

alignas(64) std::array<std::byte, 256> region;

// All results of threads that each write into theirs.
struct Litmus {
  std::set<Results> results;
  Outcome outcome;
};

template <typename... Threads>
Litmus run(size_t size, Threads... threads) {
  Litmus litmus;
  auto* const objects = reinterpret_cast<Objects*>(region.data());
  litmus.outcome = explore(region, [&] {
    declare(objects->x, "x");
    declare(objects->y, "y");
    auto found = std::make_shared<Results>(size, -1);
    Program made;
    (made.threads.push_back([=] { threads(*objects, *found); }), ...);
    made.finish = [&litmus, found] { litmus.results.insert(*found); };
    return made;
  });
  return litmus;
}

Litmus store_buffering(std::memory_order stored, std::memory_order loaded, bool fenced) {
  const auto side = [=](std::atomic<int>& own, std::atomic<int>& other, int& result) {
    own.store(1, stored);
    if (fenced) std::atomic_thread_fence(seq_cst);
    result = other.load(loaded);
  };
  return run(
      2, [=](Objects& o, Results& r) { side(o.x, o.y, r[0]); }, [=](Objects& o, Results& r) { side(o.y, o.x, r[1]); });
}

TEST(Litmus, StoreBufferingNeedsSequentialConsistency) {
  const Results neither{0, 0};
  EXPECT_TRUE(store_buffering(relaxed, relaxed, false).results.contains(neither));
  EXPECT_TRUE(store_buffering(release, acquire, false).results.contains(neither));
  EXPECT_FALSE(store_buffering(seq_cst, seq_cst, false).results.contains(neither));
  EXPECT_FALSE(store_buffering(relaxed, relaxed, true).results.contains(neither));
  EXPECT_EQ(store_buffering(relaxed, relaxed, true).results.size(), 3u);
  EXPECT_TRUE(store_buffering(relaxed, relaxed, true).outcome.is_complete);
}

Litmus message_passing(std::memory_order stored, std::memory_order loaded) {
  return run(
      1, [=](Objects& o, Results&) { o.data = 7, o.x.store(1, stored); },
      [=](Objects& o, Results& r) {
        if (o.x.load(loaded) == 1) r[0] = o.data;
      });
}

TEST(Litmus, MessagePassingNeedsReleaseAndAcquire) {
  const Litmus good = message_passing(release, acquire);
  EXPECT_EQ(good.outcome.wrong, "");
  EXPECT_THAT(good.results, UnorderedElementsAre(Results{7}, Results{-1}));
  EXPECT_THAT(message_passing(relaxed, acquire).outcome.wrong, HasSubstr("data race"));
  EXPECT_THAT(message_passing(release, relaxed).outcome.wrong, HasSubstr("data race"));
}

TEST(Litmus, MessagePassingByFences) {
  for (int dropped : {0, 1, 2}) {
    const Litmus found = run(
        1,
        [=](Objects& o, Results&) {
          o.data = 7;
          if (dropped != 1) std::atomic_thread_fence(release);
          o.x.store(1, relaxed);
        },
        [=](Objects& o, Results& r) {
          if (o.x.load(relaxed) != 1) return;
          if (dropped != 2) std::atomic_thread_fence(acquire);
          r[0] = o.data;
        });
    EXPECT_EQ(found.outcome.wrong.empty(), dropped == 0) << dropped;
  }
}

TEST(Litmus, IndependentReadsOfIndependentWrites) {
  for (const std::memory_order order : {acquire, seq_cst}) {
    const auto stored = order == acquire ? release : seq_cst;
    const Litmus found = run(
        4, [=](Objects& o, Results&) { o.x.store(1, stored); }, [=](Objects& o, Results&) { o.y.store(1, stored); },
        [=](Objects& o, Results& r) { r[0] = o.x.load(order), r[1] = o.y.load(order); },
        [=](Objects& o, Results& r) { r[2] = o.y.load(order), r[3] = o.x.load(order); });
    EXPECT_EQ(found.results.contains({1, 0, 1, 0}), order == acquire);
    EXPECT_EQ(found.results.size(), order == acquire ? 16u : 15u);
  }
}

TEST(Litmus, ReadsOfOneObjectNeverGoBack) {
  const Litmus found = run(
      2, [](Objects& o, Results&) { o.x.store(1, relaxed), o.x.store(2, relaxed); },
      [](Objects& o, Results& r) { r[0] = o.x.load(relaxed), r[1] = o.x.load(relaxed); });
  EXPECT_THAT(found.results, UnorderedElementsAre(Results{0, 0}, Results{0, 1}, Results{0, 2}, Results{1, 1},
                                                  Results{1, 2}, Results{2, 2}));
}

// 2+2W: both objects keep the first of the stores of each thread.
TEST(Litmus, StoresOfTwoThreadsMayBeOrderedAgainstTheirPrograms) {
  for (const std::memory_order order : {release, seq_cst}) {
    const Litmus found = run(
        2, [=](Objects& o, Results& r) { o.x.store(1, order), o.y.store(2, order), r[0] = o.y.load(relaxed); },
        [=](Objects& o, Results& r) { o.y.store(1, order), o.x.store(2, order), r[1] = o.x.load(relaxed); });
    EXPECT_EQ(found.results.contains({1, 1}), order == release);
  }
}

TEST(Litmus, ReadModifyWritesAreAtomic) {
  const auto add = [](Objects& o, Results& r) { r[0] = o.x.fetch_add(1, relaxed); };
  const Litmus found = run(
      3, [=](Objects& o, Results& r) { add(o, r); }, [](Objects& o, Results& r) { r[1] = o.x.fetch_add(1, relaxed); },
      [](Objects& o, Results& r) {
        int seen = 0;
        r[2] = o.x.compare_exchange_strong(seen, 5, relaxed) ? 5 : seen;
      });
  for (const Results& r : found.results) EXPECT_FALSE(r[0] == 0 && r[1] == 0);
  EXPECT_TRUE(found.results.contains({5, 6, 5}));
  EXPECT_TRUE(found.results.contains({0, 1, 2}));
}

// C++20: only read-modify-writes continue a release sequence, not the writer's own later stores.
TEST(Litmus, ReleaseSequences) {
  for (const bool is_modified : {true, false}) {
    const Litmus found = run(
        1,
        [=](Objects& o, Results&) {
          o.data = 7;
          o.x.store(1, release);
          if (is_modified) {
            o.x.fetch_add(1, relaxed);
          } else {
            o.x.store(2, relaxed);
          }
        },
        [](Objects& o, Results& r) {
          if (o.x.load(acquire) == 2) r[0] = o.data;
        });
    EXPECT_EQ(found.outcome.wrong.empty(), is_modified);
  }
}

TEST(Litmus, RacesOfPlainAccesses) {
  const auto write = [](Objects& o, Results&) { o.data = 1; };
  EXPECT_THAT(run(0, write, write).outcome.wrong, HasSubstr("data race"));
  EXPECT_THAT(run(1, write, [](Objects& o, Results& r) { r[0] = o.data; }).outcome.wrong, HasSubstr("data race"));
  EXPECT_EQ(run(1, write, [](Objects& o, Results& r) { r[0] = o.more; }).outcome.wrong, "");
  const auto read = [](Objects& o, Results& r) { r[0] = o.data; };
  EXPECT_EQ(run(1, read, read).outcome.wrong, "");
}

TEST(Litmus, AnAcquiredValueDoesNotOrderWhatComesAfterItsRelease) {
  const Litmus found = run(
      1, [](Objects& o, Results&) { o.x.store(1, release), o.data = 7; },
      [](Objects& o, Results& r) {
        if (o.x.load(acquire) == 1) r[0] = o.data;
      });
  EXPECT_THAT(found.outcome.wrong, HasSubstr("data race"));
}

TEST(Litmus, SpinningEndsAndWaitingForEverIsFound) {
  const auto await = [](Objects& o, Results&) {
    while (o.x.load(acquire) != 2) spin();
  };
  const Litmus good = run(0, await, [](Objects& o, Results&) { o.x.store(1, relaxed), o.x.store(2, release); });
  EXPECT_EQ(good.outcome.wrong, "");
  EXPECT_TRUE(good.outcome.is_complete);
  EXPECT_EQ(run(0, await, [](Objects& o, Results&) { o.x.store(1, relaxed); }).outcome.wrong, "nobody can go on");
}

// Three threads of four steps each have 34,650 orders.
TEST(Litmus, OrdersThatDoNotMatterAreExploredOnce) {
  const auto quiet = [](Objects& o, Results&) {
    for (int i = 0; i < 4; ++i) o.y.load(relaxed);
  };
  const Litmus found = run(0, quiet, quiet, quiet);
  EXPECT_TRUE(found.outcome.is_complete);
  EXPECT_LT(found.outcome.runs, 500u);
}

}  // namespace
}  // namespace ccom::model
