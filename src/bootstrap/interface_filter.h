// SPDX-License-Identifier: Apache-2.0
//
// Which interfaces the environment selects: ccom's own variable, or those that a job has set for other libraries
// already. The first that is set applies:
//
//   CCOM_SOCKET_IFNAME         taken literally
//   NCCL_SOCKET_IFNAME         name prefixes; exact names after =; exclusions after ^ (eth, =eth0, ^docker,lo)
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
  std::string origin{};  // name of the variable, "" if none is set
};

// `all`: this host's interfaces, to resolve NCCL's prefixes. ConfigError if another library's variable matches no
// interface of this host: silently choosing a different one would be worse.
Result<InterfaceFilter> read_interface_filter(const EnvironmentLookup& environment, const std::vector<Interface>& all);

}  // namespace ccom
