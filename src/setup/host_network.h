// SPDX-License-Identifier: Apache-2.0
//
// How this rank takes part in the network: at which addresses, and with how many TCP connections per channel.
#pragma once

#include <string>
#include <vector>

#include "base/network.h"
#include "setup/config.h"
#include "topology/topology.h"

namespace ccom {

struct HostNetwork {
  std::string address;             // for everything but data of tcp
  std::vector<std::string> rails;  // for that, one per interface
  int tcp_streams = 1;
};

// `all`: the interfaces of this host. One of them, unless CCOM_TCP_RAILS, or else CCOM_SOCKET_IFNAME, names several:
// then data takes each of these, in that order.
Result<HostNetwork> choose_network(const CommConfig& config, const Topology& topology,
                                   const std::vector<Interface>& all);

// Where CCOM_TCP_STREAMS is "auto". A function of what all ranks have agreed on, so that they agree on this too.
int automatic_tcp_streams(const Topology& topology);

}  // namespace ccom
