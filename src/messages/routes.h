// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "transports/transport.h"

namespace ccom {

// The transports that carry messages (and nothing else), with two channels to every peer; where ranks forward
// (relay.h), those behind the two are its lanes. Transports and channels must outlive their users. A value.
struct MessageRoutes {
  static constexpr int kChannels = 2;
  struct Route {
    int transport = -1;  // -1: unreachable
    Channel* headers = nullptr;
    Channel* payload = nullptr;
  };
  Rank rank = 0;
  std::vector<Transport*> transports;
  std::vector<Route> by_peer;
  int forwarding = -1;  // a transport that carries others' messages, too: it needs progress at any time
};

}  // namespace ccom
