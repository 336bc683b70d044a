// SPDX-License-Identifier: Apache-2.0
#include "liveness/timeout_status.h"

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

}  // namespace ccom
