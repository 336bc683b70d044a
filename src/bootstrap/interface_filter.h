// SPDX-License-Identifier: Apache-2.0
//
// Which interfaces the environment names, by ccom's own variable or by those of other libraries that a job has set
// already. The first that is set decides:
//
//   CCOM_SOCKET_IFNAME         as it is
//   NCCL_SOCKET_IFNAME         beginnings of names, whole names after =, all others after ^ (eth, =eth0, ^docker,lo)
//   GLOO_SOCKET_IFNAME         names
//   SM_NETWORK_INTERFACE_NAME  a name (SageMaker)
#pragma once

#include <string>
#include <vector>

#include "base/network.h"
#include "bootstrap/launch.h"

namespace ccom {

struct InterfaceFilter {
  std::string text{};    // in the grammar of CCOM_SOCKET_IFNAME; "": automatic
  std::string origin{};  // the variable, "" if none is set
};

// `all`: this host's interfaces, for NCCL's beginnings of names. A ConfigError if another library's variable names no
// interface of this host: to take some other one silently would be worse.
Result<InterfaceFilter> read_interface_filter(const EnvironmentLookup& environment, const std::vector<Interface>& all);

}  // namespace ccom
