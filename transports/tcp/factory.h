// SPDX-License-Identifier: Apache-2.0
//
// The TCP transport: one or more connections for every channel of every pair of ranks, driven by progress() alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/tcp_socket.h"
#include "transports/transport.h"

namespace ccom::tcp {

struct TcpConfig {
  Rank rank = -1;
  uint64_t communicator = 0;  // equal on all ranks of the communicator, unique to it
  Secret key;                 // shared by its ranks
  // IPv4 or IPv6 literals of this host, one per interface in use; no wildcards. Connection i of a channel joins the
  // i-th addresses (modulo their number) of both ranks; all ranks have equally many.
  std::vector<std::string> bind_addresses;
  int streams = 1;  // connections per channel, 1 to 16, at least one per address; equal on all ranks
  bool crc = true;  // protect payload by CRC32C, unless TLS does; equal on all ranks
  // Ranks of this host, where no wire can damage anything: they protect no payload. Equal on all of them.
  std::vector<Rank> local_ranks{};
  bool tls = false;   // encrypt all traffic by TLS 1.3; equal on all ranks
  PortRange ports{};  // to listen on
  // connect() only remembers the peers, and does not block: a channel is connected when both sides have asked for it by
  // channel(). Until then it takes operations, and its rank listens while others have to connect. Equal on all ranks.
  bool on_use = false;
  // A connection fails when the other host has not responded for that long while an operation is posted.
  std::chrono::milliseconds silence{6000};
};

// Binds and listens. ConfigError for invalid or wildcard addresses, and if no port is free; SystemError if the host
// does not have them.
Result<std::unique_ptr<Transport>> make_tcp_transport(const TcpConfig& config);

}  // namespace ccom::tcp
