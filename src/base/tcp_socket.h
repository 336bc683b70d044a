// SPDX-License-Identifier: Apache-2.0
//
// What all TCP sockets of ccom share: the ports on which they listen, and how they notice that the other host no longer
// answers.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace ccom {

// Ports that listeners may take; {0, 0}: any.
struct PortRange {
  uint16_t low = 0;
  uint16_t high = 0;
  bool is_any() const { return high == 0; }
  friend bool operator==(const PortRange&, const PortRange&) = default;
};

// "40000-40999", or "" for any: the value of CCOM_PORT_RANGE.
Result<PortRange> parse_port_range(std::string_view text);

// A socket that listens at `ip`, an IPv4 or IPv6 literal, on the first port of the range that is free; non-blocking,
// closed on exec. ConfigError for what is no literal or names no single host, and if no port is free.
Result<Descriptor> listen_at(const std::string& ip, const PortRange& ports, int backlog);

// An idle connection whose other host answers nothing for about `silence` (in whole seconds, six at least) breaks with
// ETIMEDOUT. A host that answers, but whose process reads nothing, is no silent one.
void notice_silence(int fd, std::chrono::milliseconds silence);

// The same while bytes are unacknowledged, or are kept back by a peer that reads nothing: only for connections whose
// other end always reads.
void notice_deafness(int fd, std::chrono::milliseconds silence);

}  // namespace ccom
