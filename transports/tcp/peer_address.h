// SPDX-License-Identifier: Apache-2.0
//
// What a rank tells its peers through Transport::address(): where it listens, and whether it speaks TLS there. It
// travels over the authenticated bootstrap, so two ranks that are set up differently know before they dial, and nobody
// in between can talk them out of TLS.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "transports/tcp/socket.h"

namespace ccom::tcp {

// "10.0.0.7:4100", "10.0.0.7:4100,10.1.0.7:4100 tls".
struct PeerAddress {
  std::vector<Endpoint> endpoints;  // one per interface, at least one
  bool tls = false;
};

std::string to_text(const PeerAddress& address);
Result<PeerAddress> parse_peer_address(const std::string& text);

}  // namespace ccom::tcp
