// SPDX-License-Identifier: Apache-2.0
#include "liveness/long_wait.h"

#include "base/log.h"
#include "base/text.h"

namespace ccom {

// Our peers may themselves be waiting for other ranks.
Status timeout_status(Monitor& monitor, Rank self, std::vector<Rank> ranks, bool collective) {
  std::string text = "rank " + std::to_string(self) + " timed out waiting for " + name_ranks(ranks);
  const std::vector<Rank> stragglers = collective ? monitor.find_stragglers() : std::vector<Rank>();
  if (!stragglers.empty()) {
    text += "; not yet in this call: " + name_ranks(stragglers);
    ranks = stragglers;
  }
  return Status(Code::Timeout, std::move(text))
      .with_peers(ranks)
      .with_cure("check what these ranks are doing; raise timeoutMs (CCOM_TIMEOUT_MS) if they are only slow");
}

bool LongWait::is_warning_due(Clock::time_point now, const Monitor& monitor) {
  if (since_ == Clock::time_point()) {
    since_ = now;
    next_ = monitor.warn_after().count() > 0 ? now + monitor.warn_after() : Clock::time_point::max();
  }
  return now >= next_;
}

void LongWait::warn(Monitor& monitor, Rank self, const std::vector<Rank>& ranks, bool collective) {
  const std::vector<Rank> stragglers = collective ? monitor.find_stragglers() : std::vector<Rank>();
  const auto now = Clock::now();
  next_ = now + (now - since_);
  const std::string call = text_of(monitor.last_call());
  const double seconds = std::chrono::duration<double>(now - since_).count();
  if (!stragglers.empty()) {
    log(LogLevel::Warn, "rank %d has waited %.0f s in %s: %s not come yet", self, seconds, call.c_str(),
        (name_ranks(stragglers) + (stragglers.size() == 1 ? " has" : " have")).c_str());
  } else {
    log(LogLevel::Warn, "rank %d has waited %.0f s for %s (last collective call: %s)", self, seconds,
        name_ranks(ranks).c_str(), call.c_str());
  }
}

}  // namespace ccom
