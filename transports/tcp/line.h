// SPDX-License-Identifier: Apache-2.0
//
// One established connection, and what is known about its readiness.
//
// Bytes are moved by plain non-blocking system calls on the descriptor: with few connections that is one call per poll,
// where a reactor would need two. Asio only tells when a descriptor becomes ready again: before a rank sleeps in
// wait(), and always when there are so many connections that touching each would cost more than asking once.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "transports/tcp/socket.h"
#include "transports/tcp/tls.h"

namespace ccom::tcp {

struct Line {
  explicit Line(Socket connected) : socket(std::move(connected)), fd(socket.native_handle()) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // As recvmsg and sendmsg, never blocking: how much of the parts was filled or taken; 0: the stream has ended; -1 and
  // errno. All bytes of a connection pass through these two.
  ssize_t receive(std::span<iovec> parts);
  ssize_t send(std::span<iovec> parts);
  // Whether receive() would give something although the descriptor may have nothing to read.
  bool holds_input() const { return tls != nullptr && tls->holds_input(); }

  Socket socket;
  const int fd;
  std::unique_ptr<Tls> tls;  // null: bytes travel as they are
  uint64_t sent_bytes = 0;   // in the kernel's hands so far, as the network counts
  bool read_armed = false;   // Asio will clear it when there is something to read
  bool write_armed = false;  // ... when there is room to write
  bool heard = true;         // something was read since the last new send
  bool input_ended = false;  // end of stream, after everything was read
  // See has_gone_silent().
  std::optional<Clock::time_point> owed_since;
  Clock::time_point asked{};
};

inline ssize_t Line::receive(std::span<iovec> parts) {
  if (tls != nullptr) return tls->receive(parts);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::recvmsg(fd, &message, MSG_DONTWAIT);
}

inline ssize_t Line::send(std::span<iovec> parts) {
  if (tls != nullptr) {
    const ssize_t taken = tls->send(parts);
    sent_bytes = tls->sent_bytes();
    return taken;
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t sent = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) sent_bytes += static_cast<uint64_t>(sent);
  return sent;
}

// Whether the other host has owed an answer, and given none, for `limit`. To be asked several times within it.
bool has_gone_silent(Line& line, Clock::time_point now, std::chrono::milliseconds limit);

enum class Direction { Read, Write };

// Asks Asio, once, to clear the armed flag when the line is ready, unless it is by what it holds. The line outlives the
// io_context's handlers.
inline void arm(Line& line, Direction direction) {
  bool& armed = direction == Direction::Read ? line.read_armed : line.write_armed;
  if (armed || (direction == Direction::Read && line.holds_input())) return;
  armed = true;
  line.socket.async_wait(direction == Direction::Read ? Socket::wait_read : Socket::wait_write,
                         [&armed](const ErrorCode&) { armed = false; });
}

// What errors say about a channel.
struct Route {
  Rank self = -1;
  Rank peer = -1;
  int channel = 0;
  std::string address;  // the peer's, as text
};

// "send to rank 3 at 10.0.0.7:4100 (channel 0): <reason>", blaming the peer. `number` is an errno or 0.
Status peer_error(Code code, const Route& route, const char* action, const std::string& reason, int number = 0);

}  // namespace ccom::tcp
