// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "transports/transport.h"

namespace ccom {

// What messages travel on: transports that carry nothing else, and two of their channels to every peer. Transports and
// channels outlive whoever uses them. A value.
struct MessageRoutes {
  static constexpr int kChannels = 2;
  struct Way {
    int transport = -1;  // -1: none leads there
    Channel* headers = nullptr;
    Channel* payload = nullptr;
  };
  Rank rank = 0;
  std::vector<Transport*> transports;
  std::vector<Way> ways;  // by peer
};

}  // namespace ccom
