// SPDX-License-Identifier: Apache-2.0
//
// What to report when a transport has lost a peer.
#pragma once

#include "liveness/monitor.h"

namespace ccom {

// For a RemoteError of a transport, which knows only that a connection has ended: waits up to 200 ms for the
// communicator's error, which says why, or until the peer is known to have left in order, and returns the better
// explanation. Other errors are returned as they are.
Status explain_loss(Monitor& monitor, const Status& cause);

}  // namespace ccom
