// SPDX-License-Identifier: Apache-2.0
//
// Which interface to bind: never a wildcard address, always one that was chosen and can be named in an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ccom {

// One address of one interface that is up.
struct Interface {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.7" or "fd00::7"; link-local IPv6 addresses are left out
  bool is_ipv6 = false;
  bool is_loopback = false;
};

std::vector<Interface> list_interfaces();

// The interfaces that `filter` (the grammar of CCOM_SOCKET_IFNAME; "" = automatic) allows, best first. Automatic:
// everything but loopback, docker*, veth*, virbr* and bridges made by container engines, IPv4 before IPv6; loopback if
// nothing else is there. Never empty: a filter that matches nothing is a ConfigError that lists the interfaces there
// are.
Result<std::vector<Interface>> choose_interfaces(std::string_view filter);
// The same, pure, on a given list.
Result<std::vector<Interface>> choose_interfaces(std::string_view filter, const std::vector<Interface>& all);

}  // namespace ccom
