// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/line.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ccom::tcp {

// What was seen long ago says nothing: meanwhile an answer may have come, and another question been asked.
bool has_gone_silent(Line& line, Clock::time_point now, std::chrono::milliseconds limit) {
  if (now - std::exchange(line.asked, now) > limit / 4) line.owed_since.reset();
  const Silence silence = ask_silence(line.fd);
  if (!silence.is_owed) {
    line.owed_since.reset();
    return false;
  }
  line.owed_since = std::max(line.owed_since.value_or(now), now - silence.since_answer);
  return now - *line.owed_since >= limit;
}

Status peer_error(Code code, const Route& route, const char* action, const std::string& reason, int number) {
  return error(code, "rank %d %s rank %d at %s (channel %d): %s%s%s", route.self, action, route.peer,
               route.address.c_str(), route.channel, reason.c_str(), number != 0 && !reason.empty() ? ": " : "",
               number != 0 ? std::generic_category().message(number).c_str() : "")
      .with_peers({route.peer})
      .with_host(route.address)
      .with_errno(number);
}

}  // namespace ccom::tcp
