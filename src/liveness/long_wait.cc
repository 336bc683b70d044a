// SPDX-License-Identifier: Apache-2.0
#include "liveness/long_wait.h"

#include "base/log.h"
#include "base/text.h"

namespace ccom {
namespace {

constexpr std::chrono::milliseconds kCompareAfter{300}, kCompareEvery{100};

}  // namespace

// Our peers may themselves be waiting for other ranks.
Status timeout_status(Monitor& monitor, Rank self, std::vector<Rank> ranks, bool collective) {
  std::string text = "rank " + std::to_string(self) + " timed out waiting for " + name_ranks(ranks);
  const std::vector<Rank> stragglers = collective ? monitor.find_stragglers() : std::vector<Rank>();
  if (!stragglers.empty()) {
    text += "; not yet in this call: " + name_ranks(stragglers);
    ranks = stragglers;
  }
  return Status(ErrorKey::RankLate, std::move(text))
      .with_peers(ranks)
      .with_cure("check what these ranks are doing; raise timeoutMs (CCOM_TIMEOUT_MS) if they are only slow");
}

bool LongWait::is_due(Clock::time_point now) {
  if (since_ == Clock::time_point()) {
    since_ = now;
    next_comparison_ = now + kCompareAfter;
    next_warning_ = monitor_.warn_after().count() > 0 ? now + monitor_.warn_after() : Clock::time_point::max();
  }
  return now >= next_comparison_ || now >= next_warning_;
}

void LongWait::react(const std::vector<Rank>& ranks, bool collective) {
  const auto now = Clock::now();
  if (now >= next_comparison_) {
    next_comparison_ = now + kCompareEvery;
    if (collective) {
      is_comparing_ = true;
      monitor_.compare_calls();
    }
  }
  if (now >= next_warning_) warn(now, ranks, collective);
}

void LongWait::warn(Clock::time_point now, const std::vector<Rank>& ranks, bool collective) {
  const std::vector<Rank> stragglers = collective ? monitor_.find_stragglers() : std::vector<Rank>();
  next_warning_ = now + (now - since_);
  const LogContext context(self_, monitor_.communicator());
  const std::string call = short_text_of(monitor_.last_call());
  const double seconds = std::chrono::duration<double>(now - since_).count();
  const std::string activities = "; " + describe(monitor_.ask_activities());
  if (!stragglers.empty()) {
    log(LogLevel::Warn, "rank %d has waited %.0f s in %s: %s not come yet%s", self_, seconds, call.c_str(),
        (name_ranks(stragglers) + (stragglers.size() == 1 ? " has" : " have")).c_str(), activities.c_str());
  } else {
    log(LogLevel::Warn, "rank %d has waited %.0f s for %s (last collective call: %s)%s", self_, seconds,
        name_ranks(ranks).c_str(), call.c_str(), activities.c_str());
  }
}

}  // namespace ccom
