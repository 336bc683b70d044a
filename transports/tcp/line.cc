// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/line.h"

#include <system_error>

namespace ccom::tcp {

Status peer_error(Code code, const Route& route, const char* action, const std::string& reason, int number) {
  return error(code, "rank %d %s rank %d at %s (channel %d): %s%s%s", route.self, action, route.peer,
               route.address.c_str(), route.channel, reason.c_str(), number != 0 && !reason.empty() ? ": " : "",
               number != 0 ? std::generic_category().message(number).c_str() : "")
      .with_peers({route.peer})
      .with_host(route.address)
      .with_errno(number);
}

}  // namespace ccom::tcp
