// SPDX-License-Identifier: Apache-2.0
//
// Whether ranks reach the server of a rendezvous through its socket, or a process of each host speaks for all of its
// ranks (host_relay.h), and to whom.
#pragma once

#include <string>

#include "base/tcp_socket.h"

namespace ccom {

struct RelayUse {
  bool has_socket = false;  // ranks of the server's host use its socket
  std::string host{};       // ranks with different ones speak for themselves, or by another relay
  PortRange ports{};        // where relays of other hosts can reach that of this one
  int most_without = 32;    // ranks; where there are more of them, a process of each host speaks for all
  int most_in_star = 512;   // ranks; where there are more of them, few relays speak to the server, and others to those
};

}  // namespace ccom
