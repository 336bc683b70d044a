// SPDX-License-Identifier: Apache-2.0
//
// The TCP transport: for every channel of every pair of ranks one or several connections, driven by progress() alone.
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
  uint64_t communicator = 0;  // the same at all ranks of the communicator, another for any other
  Secret key;                 // shared by its ranks
  // IPv4 or IPv6 literals of this host, one per interface to be used; never a wildcard. Of each channel's connections
  // the i-th joins the i-th addresses of both ranks, counted round and round; all ranks have equally many.
  std::vector<std::string> bind_addresses;
  int streams = 1;    // connections per channel, 1 to 16, but at least one per address; the same at all ranks
  bool crc = true;    // payload carries CRC32C, unless TLS checks it anyway; the same at all ranks
  bool tls = false;   // everything travels inside TLS 1.3; the same at all ranks
  PortRange ports{};  // to listen on
  // A connection breaks when the other host has answered nothing for so long although something is posted.
  std::chrono::milliseconds silence{6000};
};

// Binds and listens. ConfigError for addresses that are none or wildcards, and if no port is free; SystemError if the
// host does not have them.
Result<std::unique_ptr<Transport>> make_tcp_transport(TcpConfig config);

}  // namespace ccom::tcp
