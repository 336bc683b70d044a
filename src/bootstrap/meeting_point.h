// SPDX-License-Identifier: Apache-2.0
//
// Meeting points held by this process. Whoever makes a unique id holds its meeting point, although nothing that it
// keeps in hand stands for it: the id is 128 bytes, and the communicator may be made by other processes only.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/time.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Makes an id with a fresh secret and starts its meeting point on the best interface that `interface_filter` (the
// grammar of CCOM_SOCKET_IFNAME) allows: all ranks may turn out to be on this host, but nobody knows yet, so loopback
// is not chosen for it. Takes the first free port of the range. The meeting point ends when all ranks came and left, or
// soon after `init_deadline`.
Result<UniqueId> create_unique_id(std::string_view interface_filter, const PortRange& ports, Deadline init_deadline);

// Starts the meeting point of an id made from a url, at the address it names. Waits for an earlier meeting at the same
// address to end.
Status host_meeting_point(const UniqueId& id, Deadline init_deadline);

// Calls `cleanup` once the meeting point of `id` has ended, from another thread; at once if it is not held here.
void when_meeting_ends(const UniqueId& id, std::function<void()> cleanup);

}  // namespace ccom
