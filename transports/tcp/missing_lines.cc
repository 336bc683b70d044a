// SPDX-License-Identifier: Apache-2.0
//
// Channels that are connected on use, over several rails, when one of these is dead already: once a channel has a line,
// those that cannot be connected are lost for good (rails.h), and it goes on without them.
//
// The rank that connects knows that a rail is dead when the peer's kernel does not answer; a peer that is late is
// waited for. The one that accepts sees nothing come. Nobody sends before he has done without what is missing, so data
// on another line tells; without any it waits four times as long. Whoever is wrong closes what the other one has, which
// loses that line for both.
#include <sys/ioctl.h>

#include "transports/tcp/connect_handshakes.h"
#include "transports/tcp/connection_setup.h"

namespace ccom::tcp {
namespace {

constexpr int kLimitsWithoutData = 4;

bool has_data(int fd) {
  int bytes = 0;
  return ::ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

}  // namespace

bool ConnectionSetup::is_dead(const Expected& expected, const LineId& id) const {
  const Expected::Begun& begun = expected.begun.at(id.channel);
  const auto now = Clock::now();
  for (const auto& attempt : attempts_) {
    if (attempt->is_for(id)) return now - std::max(begun.since, attempt->unreached_since(now)) > rail_limit_;
  }
  return now - begun.since > (has_data(begun.fd) ? 1 : kLimitsWithoutData) * rail_limit_;
}

Status ConnectionSetup::lose_dead_rails() {
  for (auto& [peer, expected] : expected_) {
    std::erase_if(expected.begun, [&, peer = peer](const auto& each) {
      for (int stream = 0; stream < self_.streams; ++stream) {
        if (is_missing({peer, each.first, stream})) return false;
      }
      return true;
    });
    for (const auto& [channel, begun] : expected.begun) {
      for (int stream = 0; stream < self_.streams; ++stream) {
        const LineId id{peer, channel, stream};
        if (is_missing(id) && is_dead(expected, id)) CCOM_TRY(lose(expected, id));
      }
    }
  }
  return Status::ok();
}

// A line that was never connected takes its place.
Status ConnectionSetup::lose(const Expected& expected, const LineId& id) {
  for (const auto& attempt : attempts_) {
    if (attempt->is_for(id)) attempt->close();
  }
  CCOM_TRY_ASSIGN(const PeerAddress address, parse_peer_address(expected.peer.address));
  const size_t interface = static_cast<size_t>(id.stream) % local_interfaces_.size();
  Socket socket(io_);
  (void)open_from(socket, local_interfaces_[interface].address);  // which may be gone
  if (!socket.is_open()) return system_error(errno, "connect rank %d: open a socket", self_.rank);
  auto line = std::make_unique<Line>(std::move(socket));
  line->remote = address.endpoints[interface];
  line->is_lost = line->is_failed = line->input_ended = true;
  admit(id, std::move(line));
  return Status::ok();
}

}  // namespace ccom::tcp
