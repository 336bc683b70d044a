// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous servers run by this process. The process that creates a unique id runs the server for it, although no
// handle represents the server: the id is 128 bytes, and the communicator may be created by other processes only.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/time.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Creates an id with a random secret and starts its server on the best interface that `interface_filter` (the grammar
// of CCOM_SOCKET_IFNAME) allows. Loopback is not chosen automatically, since it is not yet known whether all ranks are
// on this host. Uses the first free port of the range. The server ends when all ranks have joined and left, or soon
// after `init_deadline`.
Result<UniqueId> create_unique_id(std::string_view interface_filter, const PortRange& ports, Deadline init_deadline);

// Starts the server of an id created from a url, at its address. Waits for an earlier rendezvous at the same address to
// end.
Status host_rendezvous(const UniqueId& id, Deadline init_deadline);

// Calls `cleanup` on another thread once the server of `id` has ended; at once if it does not run in this process.
void when_rendezvous_ends(const UniqueId& id, std::function<void()> cleanup);

}  // namespace ccom
