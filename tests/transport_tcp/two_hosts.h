// SPDX-License-Identifier: Apache-2.0
//
// Two ranks on hosts that are network namespaces.
#pragma once

#include <functional>

#include "tests/harness/namespaces.h"
#include "transports/tcp/factory.h"

namespace ccom::tcp {

class TwoHosts : public Namespaces {
 public:
  using Namespaces::Namespaces;
  // Both ranks, each in a thread on its host, connected to each other by what `adapt` makes of the configs; returns
  // when both bodies have.
  using Adapt = std::function<void(TcpConfig& config, int host)>;
  using Body = std::function<void(Rank rank, Transport& transport, Channel& channel)>;
  void run(const Adapt& adapt, const Body& body);
};

}  // namespace ccom::tcp
