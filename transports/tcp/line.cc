// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/line.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ccom::tcp {

// An old observation does not count: a response and a new request may have followed.
std::chrono::nanoseconds silent_for(Line& line, Clock::time_point now, std::chrono::nanoseconds longest_gap) {
  if (now - std::exchange(line.last_check, now) > longest_gap) line.silent_since.reset();
  const Silence silence = query_silence(line.fd);
  if (!silence.is_response_due) {
    line.silent_since.reset();
    return {};
  }
  line.silent_since = std::max(line.silent_since.value_or(now), now - silence.since_answer);
  return now - *line.silent_since;
}

Status peer_error(Code code, const Route& route, const char* action, const std::string& reason, int number) {
  return error(code, "rank %d: %s rank %d at %s (channel %d): %s%s%s", route.self, action, route.peer,
               route.address.c_str(), route.channel, reason.c_str(), number != 0 && !reason.empty() ? ": " : "",
               number != 0 ? std::generic_category().message(number).c_str() : "")
      .with_peers({route.peer})
      .with_errno(number);
}

}  // namespace ccom::tcp
