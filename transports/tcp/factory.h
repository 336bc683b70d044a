// SPDX-License-Identifier: Apache-2.0
//
// The TCP transport: for every channel of every pair of ranks one or several connections, driven by progress() alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/secret.h"
#include "transports/transport.h"

namespace ccom::tcp {

struct TcpConfig {
  Rank rank = -1;
  uint64_t communicator = 0;  // the same at all ranks of the communicator, another for any other
  Secret key;                 // shared by its ranks
  std::string bind_address;   // an IPv4 or IPv6 literal of this host; never a wildcard
  int streams = 1;            // connections per channel, 1 to 16; the same at all ranks
  bool crc = true;            // payload carries CRC32C, unless TLS checks it anyway; the same at all ranks
  bool tls = false;           // everything travels inside TLS 1.3; the same at all ranks
};

// Binds a port of the kernel's choice and listens. ConfigError for an address that is none or a wildcard; SystemError
// if the host does not have it.
Result<std::unique_ptr<Transport>> make_tcp_transport(TcpConfig config);

}  // namespace ccom::tcp
