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

void LongWait::begin(Clock::time_point now, const Monitor& monitor) {
  if (is_under_way_) return;
  is_under_way_ = true;
  since_ = now;
  next_ = monitor.warn_after().count() > 0 ? now + monitor.warn_after() : Clock::time_point::max();
}

void LongWait::warn(Monitor& monitor, Rank self, const std::vector<Rank>& ranks, bool collective) {
  const std::vector<Rank> stragglers = collective ? monitor.find_stragglers() : std::vector<Rank>();
  const auto now = Clock::now();
  next_ = now + (now - since_);
  const double seconds = std::chrono::duration<double>(now - since_).count();
  if (!stragglers.empty()) {
    log(LogLevel::Warn, "rank %d has waited %.0f s in %s: %s not come yet", self, seconds, monitor.call_text().c_str(),
        (name_ranks(stragglers) + (stragglers.size() == 1 ? " has" : " have")).c_str());
  } else {
    log(LogLevel::Warn, "rank %d has waited %.0f s for %s (last collective call: %s)", self, seconds,
        name_ranks(ranks).c_str(), monitor.call_text().c_str());
  }
}

}  // namespace ccom
