// SPDX-License-Identifier: Apache-2.0
//
// The address that a rank gives its peers through Transport::address(): where it listens, and whether it uses TLS. It
// is exchanged over the authenticated bootstrap, so ranks detect different settings before they connect, and an
// attacker cannot downgrade TLS.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "transports/tcp/socket.h"

namespace ccom::tcp {

// "10.0.0.7:4100", "10.0.0.7:4100,10.1.0.7:4100 tls".
struct PeerAddress {
  std::vector<Endpoint> endpoints;  // one per interface; never empty
  bool tls = false;
};

std::string to_text(const PeerAddress& address);
Result<PeerAddress> parse_peer_address(const std::string& text);

}  // namespace ccom::tcp
