// SPDX-License-Identifier: Apache-2.0
#include "liveness/straggler_watch.h"

#include <thread>

#include "base/time.h"
#include "liveness/call_mismatch.h"
#include "liveness/monitor.h"

namespace ccom {
namespace {

// Enough for a straggler poll over four levels of the tree, with one check interval per host.
constexpr std::chrono::milliseconds kStragglerPollTime{150};

// How often a host says what its ranks do: often at first, while somebody waits for the answer; then so that it is
// fresh when an error quotes it.
constexpr int64_t kShortIntervalNs = 15 * kNsPerMs, kLongIntervalNs = 500 * kNsPerMs, kBeginningNs = 200 * kNsPerMs;
constexpr int64_t kQuestionsEveryNs = 100 * kNsPerMs;  // where ranks are outside of calls

}  // namespace

StragglerReport StragglerWatch::on_host() const { return board_.straggler_report(host_.ranks); }

ActivityTable StragglerWatch::read_activities(int64_t now_ns) const {
  std::vector<RankActivity> activities = board_.activities(host_.ranks);
  for (RankActivity& activity : activities) activity.host = host_.name;
  return table_of(activities, now_ns);
}

StragglerReport StragglerWatch::ask_all_hosts(const std::function<void()>& wake,
                                              const std::function<bool()>& goes_on) const {
  const PollWish asked_before = ask(PollWish::Places);
  wake();
  for (const Deadline deadline = Deadline::after(kStragglerPollTime); !deadline.passed() && goes_on();)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const StragglerReport found = on_all_hosts();
  ask(asked_before);
  return found;
}

std::optional<StragglerReport> StragglerWatch::poll(ControlTree& tree, int64_t now_ns) {
  const PollWish wish = board_.poll_wish(now_ns);
  const bool is_asked_for = wish != PollWish::Nothing || now_ns < asks_until_ns_;
  if (!tree.straggler_poll().is_on() && !is_asked_for) {
    begun_ns_ = last_reading_ns_ = 0;
    return std::nullopt;
  }
  StragglerReport own = on_host();
  own.is_asked_for = is_asked_for;
  own.asks_places = wish == PollWish::Places;
  if (begun_ns_ == 0) begun_ns_ = now_ns;
  const bool reads = reads_now(own.asks_places || tree.straggler_poll().is_asked_for_places(), now_ns);
  if (reads) activities_ = read_activities(now_ns);
  own.activities = activities_;
  tree.poll_stragglers(std::move(own), reads);
  StragglerReport found = tree.straggler_poll().result();
  const StragglerReport slowest{found.calls, found.ranks};
  if (board_.stragglers() != slowest) board_.publish_stragglers(slowest);
  if (reads || now_ns - begun_ns_ < kBeginningNs)
    board_.publish_elsewhere(tree.straggler_poll().activities_elsewhere(), now_ns);
  return found;
}

bool StragglerWatch::reads_now(bool asks_places, int64_t now_ns) {
  const bool is_short = asks_places || now_ns - begun_ns_ < kBeginningNs;
  const int64_t interval_ns = is_short ? kShortIntervalNs : kLongIntervalNs;
  if (now_ns < last_reading_ns_ + interval_ns) return false;
  last_reading_ns_ = now_ns;
  if (asks_places && now_ns >= next_question_ns_) {
    next_question_ns_ = now_ns + kQuestionsEveryNs;
    board_.ask_places();
  }
  return true;
}

std::optional<Status> difference_error(const StragglerReport& known, size_t nranks) {
  const auto found = known.find_difference();
  if (!found) return std::nullopt;
  const auto& [a, b] = *found;
  if (are_same(a.call, b.call)) {
    if (a.ranks + b.ranks < nranks) return std::nullopt;
    const auto before =
        std::ranges::find(known.begun, a.call.number - 1, [](const BegunCall& c) { return c.call.number; });
    return results_error(a, b, before == known.begun.end() ? "earlier calls" : text_of(before->call));
  }
  return mismatch_error(a.rank, text_of(a.call), b.rank, text_of(b.call));
}

}  // namespace ccom
