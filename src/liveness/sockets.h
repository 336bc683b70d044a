// SPDX-License-Identifier: Apache-2.0
//
// Socket helpers for control connections: numeric TCP addresses such as "10.0.0.7:4100" and
// "[fd00::7]:4100". All sockets are non-blocking and close on exec.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/status.h"
#include "base/tcp_socket.h"

namespace ccom {

// ConfigError unless it is the numeric address of one interface.
Result<Descriptor> listen_on(const std::string& ip, const PortRange& ports);
Result<std::string> address_of(const Descriptor& listener);
// Starts to connect; the socket becomes writable on success or failure.
Result<Descriptor> start_connect(const std::string& address);
// 0, or the errno of the failed connection.
int connect_outcome(const Descriptor& socket);

}  // namespace ccom
