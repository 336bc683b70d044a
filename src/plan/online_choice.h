// SPDX-License-Identifier: Apache-2.0
//
// Which of several ways to run calls of one kind is the fastest here, found out by the calls themselves.
//
// The ways compute the same expressions, so results do not depend on what is chosen. Pure: ranks that ask and tell the
// same in the same order choose alike.
//
// A way that is being tried takes turns with the best one known, three calls each, of which the last is timed: those
// before find memory in the caches where calls of the other way have left it, and may be much faster or slower for
// that. So each try stands between two times of the best one, and is compared with these: what a machine does meanwhile
// hits all three.
//
// Ways are tried in the order of their prices. Trying is paid for in calls of the best way: it costs at most kShare of
// the calls so far, and ways whose prices are less than the first one's may cost kFreeCalls once, because short jobs,
// too, are to find them. Ways that are likely to cost more wait until it is earned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ccom {

// What prices say of ways.
struct ExpectedWays {
  size_t first = 0;              // calls begin with it
  std::vector<double> prices{};  // by way, in any unit; empty: not known
};

class OnlineChoice {
 public:
  static constexpr double kShare = 0.02;     // of all calls, for trying
  static constexpr double kFreeCalls = 24;   // and so many once for ways whose prices are lower
  static constexpr double kMostCharged = 1;  // for one call that took longer: what is beyond was not its way's fault
  static constexpr double kGain = 1.03;      // by which another way must be faster
  static constexpr double kHopeless = 1.25;  // slower than the best by this in all of kFewTries: not tried again
  static constexpr uint32_t kTries = 5, kFewTries = 2;
  // Of its tries, so many must be faster than the faster one of the two calls of the best way around each. Where they
  // differ among themselves by more than kNoisy they must be faster than the mean of the two, twice: ranks that
  // outnumber their processors are moved about, and the faster one of two calls is an exception there.
  static constexpr size_t kWins = 4;
  static constexpr double kNoisy = 1.25;
  static constexpr size_t kFirstCalls = 2;  // before one that is timed: staging memory has two banks, which take turns
  // Once all ways have been tried: so many calls in a row that take so much longer, or less long, and they are tried
  // again. Virtual processors move, other jobs come and go.
  static constexpr double kChanged = 1.5;
  static constexpr uint32_t kUnlike = 16;
  // Calls that try nothing are timed now and then: one in so many, and once all ways have been tried. After one that
  // took much longer, or less long, those that follow are.
  static constexpr uint32_t kSampled = 8, kWatched = 64;

  explicit OnlineChoice(size_t ways, const ExpectedWays& expected = {});

  struct Next {
    size_t way = 0;
    bool is_timed = false;  // add() or forget() follows
  };
  // At most one call that tries something is under way.
  Next next();
  // A timed call took so long.
  void add(size_t way, double ns);
  // Nobody will hear how long the call of next() took.
  void forget();

  size_t best() const { return best_; }
  double best_ns() const { return recent_.median_ns; }  // 0: not known yet
  bool is_settled() const { return is_settled_; }
  // Of the times that count for a way; 0: it has not been tried, or not since the machine has changed.
  double median_ns(size_t way) const {
    if (way >= ways_.size()) return 0;
    return way == best_ ? best_ns() : ways_[way].median_ns;
  }
  // How many calls have asked, and how many had when the best one was taken; 0: it was expected to be the best.
  uint64_t asked() const { return asked_; }
  uint64_t chosen_at() const { return chosen_at_; }
  // How many calls more could have been made in the time that trying has cost, since the machine has changed.
  double lost_calls() const { return lost_calls_; }

 private:
  struct Times {
    std::array<double, kTries> ns{};
    uint32_t count = 0;
    double median_ns = 0;
    void add(double value);
  };
  struct Way : Times {
    std::array<double, kTries> to_faster{}, to_mean{};  // of each try, to that of the two calls around it
    bool is_hopeless = false;
    bool has_won = false;  // in the turn of tries before this one
    void add(double value, double before, double after);
    bool wins();
  };
  std::optional<size_t> to_try() const;
  size_t take_turn();
  bool wants_time(size_t way) const;
  void judge(double after);
  void adopt(size_t way);
  void watch(double ns);
  void reopen();

  struct Try {
    size_t way = 0;
    double ns = 0, before = 0;  // it took so long, and the call of the best way before it
  };
  std::vector<size_t> order_;  // of trying
  size_t lower_priced_ = 0;    // the first ones there
  std::vector<Way> ways_;
  Times recent_;          // of the best one: the latest calls, by turns; the median of the last whole turn
  double latest_ns_ = 0;  // of these
  size_t best_ = 0;
  std::optional<size_t> trying_;
  bool is_under_way_ = false;      // the timed call of what is tried
  std::optional<Try> tried_;       // the last try, until the best one is timed again
  size_t last_ = 0;                // the way of the last call
  size_t in_a_row_ = kFirstCalls;  // calls of that way just before it
  uint64_t asked_ = 0, chosen_at_ = 0, opened_at_ = 0;
  size_t turn_ = 0;  // in order_
  double lost_calls_ = 0;
  double settled_ns_ = 0;
  uint32_t unlike_ = 0;
  bool is_settled_ = false;
};

}  // namespace ccom
