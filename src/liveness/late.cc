// SPDX-License-Identifier: Apache-2.0
#include "liveness/late.h"

#include "base/text.h"

namespace ccom {

// Those that we wait for may themselves be waiting for others.
Status timeout_status(Monitor& monitor, Rank self, std::vector<Rank> ranks, bool all_take_part) {
  std::string text = "rank " + std::to_string(self) + " waited in vain for " + name_ranks(ranks);
  const std::vector<Rank> behind = all_take_part ? monitor.who_is_behind() : std::vector<Rank>();
  if (!behind.empty()) {
    text += "; not yet in this call: " + name_ranks(behind);
    ranks = behind;
  }
  return Status(Code::Timeout, std::move(text))
      .with_peers(ranks)
      .with_cure("look what these ranks are doing; raise timeoutMs (CCOM_TIMEOUT_MS) if they are only slow");
}

}  // namespace ccom
