// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "transports/transport.h"

namespace ccom {

// The transports that carry messages (and nothing else), with two channels to every peer. Transports and channels must
// outlive their users. A value.
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
};

}  // namespace ccom
