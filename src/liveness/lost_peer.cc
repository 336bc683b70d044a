// SPDX-License-Identifier: Apache-2.0
#include "liveness/lost_peer.h"

#include <thread>

namespace ccom {

Status explain_loss(Monitor& monitor, const Status& cause) {
  constexpr std::chrono::milliseconds kGrace{200};
  if (cause.code() != Code::RemoteError) return cause;
  for (const Deadline grace = Deadline::after(kGrace); !grace.passed();) {
    if (Status known = monitor.check(); !known.is_ok()) return known;
    if (std::optional<Status> departed = monitor.find_departed(cause.peers())) return *std::move(departed);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return cause;
}

}  // namespace ccom
