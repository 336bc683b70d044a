// SPDX-License-Identifier: Apache-2.0
//
// Chooses the interface to bind: never a wildcard address, so that errors can name it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ccom {

// One address of an interface that is up.
struct Interface {
  std::string name;     // "eth0"
  std::string address;  // "10.0.0.7" or "fd00::7"; link-local IPv6 addresses are left out
  bool is_ipv6 = false;
  bool is_loopback = false;
};

std::vector<Interface> list_interfaces();

// The interfaces that `filter` (the grammar of CCOM_SOCKET_IFNAME; "" = automatic) allows, best first. Automatic: all
// except loopback, docker*, veth*, virbr* and bridges of container engines; IPv4 before IPv6; loopback if there is no
// other. Never empty: a filter without a match is a ConfigError that lists the available interfaces.
Result<std::vector<Interface>> choose_interfaces(std::string_view filter);
// The same as a pure function of a given list.
Result<std::vector<Interface>> choose_interfaces(std::string_view filter, const std::vector<Interface>& all);

}  // namespace ccom
