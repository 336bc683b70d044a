// SPDX-License-Identifier: Apache-2.0
//
// The fastest way is found, at a price that is bounded, and again when the machine changes.
#include "plan/online_choice.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ccom {
namespace {

// Calls one after another. As between ranks, a time is known when the next call has begun.
class Calls {
 public:
  explicit Calls(std::vector<double> ns) : ns_(std::move(ns)), choice_(ns_.size()), made_(ns_.size()) {}

  void make(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t way = choice_.next();
      if (last_ < ns_.size()) choice_.add(last_, ns_[last_] * noise());
      last_ = way;
      ++made_[way];
    }
  }
  void change(std::vector<double> ns) { ns_ = std::move(ns); }
  double noise() { return 1 + noise_ * std::uniform_real_distribution<>(-1, 1)(random_); }
  void set_noise(double noise) { noise_ = noise; }

  OnlineChoice& choice() { return choice_; }
  const std::vector<size_t>& made() const { return made_; }

 private:
  std::vector<double> ns_;
  OnlineChoice choice_;
  std::vector<size_t> made_;
  size_t last_ = SIZE_MAX;
  double noise_ = 0;
  std::mt19937_64 random_{7};
};

TEST(OnlineChoice, FindsTheFastestWay) {
  Calls calls({120, 100, 90, 400});
  calls.set_noise(0.02);
  calls.make(1000);
  EXPECT_TRUE(calls.choice().is_settled());
  EXPECT_EQ(calls.choice().best(), 2U);
  const size_t before = calls.made()[2];
  calls.make(100);
  EXPECT_EQ(calls.made()[2], before + 100) << "nothing is tried any more";
}

TEST(OnlineChoice, KeepsWhatIsExpectedToBeFastestUnlessAnotherWayIsClearlyFaster) {
  Calls calls({100, 99, 98});
  calls.make(1000);
  EXPECT_TRUE(calls.choice().is_settled());
  EXPECT_EQ(calls.choice().best(), 0U);
}

TEST(OnlineChoice, TriesForNoMoreThanItsShareOfTheTime) {
  Calls calls({100, 150, 170, 300, 1000, 120, 110});
  for (int i = 0; i < 2000; ++i) {
    calls.make(1);
    // One call may cost more than it was expected to.
    EXPECT_LE(calls.choice().lost_ns(), OnlineChoice::kShare * calls.choice().total_ns() + 1000) << i;
  }
  EXPECT_TRUE(calls.choice().is_settled());
  EXPECT_LE(calls.made()[4], OnlineChoice::kFewTries) << "ten times as slow";
}

TEST(OnlineChoice, TriesAgainWhenTheMachineChanges) {
  Calls calls({100, 140});
  calls.make(500);
  ASSERT_TRUE(calls.choice().is_settled());
  ASSERT_EQ(calls.choice().best(), 0U);
  calls.change({500, 150});  // as if the cores were far apart now
  calls.make(1000);
  EXPECT_TRUE(calls.choice().is_settled());
  EXPECT_EQ(calls.choice().best(), 1U);
}

TEST(OnlineChoice, IsNotMisledByAFewSlowCalls) {
  Calls calls({100, 140});
  calls.make(500);
  calls.change({1000, 140});
  calls.make(OnlineChoice::kUnlike - 2);
  calls.change({100, 140});
  calls.make(100);
  EXPECT_TRUE(calls.choice().is_settled());
  EXPECT_EQ(calls.choice().best(), 0U);
}

TEST(OnlineChoice, OfOneWayTriesNothing) {
  Calls calls({100});
  EXPECT_TRUE(calls.choice().is_settled());
  calls.make(100);
  EXPECT_EQ(calls.made()[0], 100U);
}

// A call whose time nobody hears does not end the trying.
TEST(OnlineChoice, GoesOnAfterATimeThatWasLost) {
  OnlineChoice choice(2);
  bool has_tried = false;
  for (int i = 0; i < 1000 && !choice.is_settled(); ++i) {
    const size_t way = choice.next();
    if (way == 1 && !has_tried) {
      has_tried = true;
      choice.forget();
      continue;
    }
    choice.add(way, way == 1 ? 50 : 100);
  }
  EXPECT_TRUE(has_tried && choice.is_settled());
  EXPECT_EQ(choice.best(), 1U);
}

// The property that ranks rely on.
TEST(OnlineChoice, IsTheSameForAllWhoHearTheSame) {
  std::mt19937_64 random(3);
  OnlineChoice a(6), b(6);
  for (int i = 0; i < 20'000; ++i) {
    const size_t way = a.next();
    ASSERT_EQ(way, b.next());
    const double ns = 100 + static_cast<double>(random() % 1000) * (i % 3000 < 1500 ? 1.0 : 0.1);
    if (random() % 50 == 0) {
      a.forget(), b.forget();
    } else {
      a.add(way, ns), b.add(way, ns);
    }
  }
}

}  // namespace
}  // namespace ccom
