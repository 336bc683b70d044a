// SPDX-License-Identifier: Apache-2.0
//
// What all TCP sockets have in common: addresses as text, listening ports, and detection of unreachable hosts.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace ccom {

// "10.0.0.7:4100", "[fd00::7]:4100", "node7:4100".
struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};
// InvalidArgument with the reason.
Result<HostPort> parse_host_port(std::string_view text);
std::string endpoint_text(const std::string& host, uint16_t port);

// Ports for listeners; {0, 0}: any.
struct PortRange {
  uint16_t low = 0;
  uint16_t high = 0;
  bool is_any() const { return high == 0; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// Parses CCOM_PORT_RANGE: "40000-40999", or "" for any.
Result<PortRange> parse_port_range(std::string_view text);

// Non-blocking, close-on-exec, like all sockets of ccom. Closed, with errno, if there is none.
Descriptor new_tcp_socket(int family);

// Listens at `ip`, an IPv4 or IPv6 literal, on the first free port of the range; non-blocking, close-on-exec.
// ConfigError if `ip` is no literal or a wildcard, and if no port is free.
Result<Descriptor> listen_at(const std::string& ip, const PortRange& ports, int backlog);

// The same on one port (0: any free one), with the system's own error if that one is in use.
Result<Descriptor> listen_at_port(const std::string& ip, uint16_t port, int backlog);

// As listen_at(), but does not listen yet: nobody else gets the port, and connections to it are refused until listen().
Result<Descriptor> keep_port_at(const std::string& ip, const PortRange& ports);

// A connection to an IPv4 or IPv6 literal that is under way: writable, or with an error, when that has ended.
Result<Descriptor> begin_to_connect(const std::string& ip, uint16_t port);

// For messages that are rare and small: none may be delayed by Nagle's algorithm.
void disable_nagle(int fd);

// An idle connection breaks with ETIMEDOUT when the other host has not answered for about `silence` (whole seconds, at
// least six). A host that answers counts as alive, even if its process does not read.
void enable_keepalive(int fd, std::chrono::milliseconds silence);

// The same while sent bytes are unacknowledged, or held back because the peer does not read: only for connections whose
// peer always reads.
void set_user_timeout(int fd, std::chrono::milliseconds silence);

}  // namespace ccom
