// SPDX-License-Identifier: Apache-2.0
//
// An established connection and its readiness state.
//
// Data moves by plain non-blocking system calls on the descriptor: with few connections that is one call per poll,
// where asking first would need two. Readiness only tells when a descriptor becomes ready again: before a rank sleeps
// in wait(), and always if there are so many connections that polling each would cost more than asking for all.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "base/tls.h"
#include "transports/tcp/readiness.h"
#include "transports/tcp/socket.h"

namespace ccom::tcp {

struct Line {
  explicit Line(Socket connected) : socket(std::move(connected)), fd(socket->native_handle()) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // It is connected, or lost for good: Asio has no more to do with it.
  void establish(Readiness& now_asked) {
    descriptor = socket->detach();
    socket.reset();
    if (!is_failed) remote = remote_endpoint(fd);
    readiness = &now_asked;
  }

  // Like recvmsg and sendmsg without blocking: the number of bytes transferred; 0: end of stream; -1 with errno. All
  // data of a connection passes through these two.
  ssize_t receive(std::span<iovec> parts);
  ssize_t send(std::span<iovec> parts);
  // Whether receive() would return data although the descriptor may not be readable.
  bool holds_input() const { return tls != nullptr && tls->holds_input(); }

  std::optional<Socket> socket;  // until it is established
  Descriptor descriptor;         // from then on
  Endpoint remote;               // the kernel forgets it once the connection has failed
  Readiness* readiness = nullptr;
  const int fd;
  std::unique_ptr<Tls> tls;  // null: no encryption
  uint64_t sent_bytes = 0;   // accepted by the kernel so far, as counted on the network
  bool read_armed = false;   // cleared when readable
  bool write_armed = false;  // cleared when writable
  bool has_received = true;  // data was received since the last new send
  bool input_ended = false;  // end of stream reached
  bool is_lost = false;      // others carry what was on it (rails.h) ...
  bool is_failed = false;    // ... for good
  // See silent_for().
  std::optional<Clock::time_point> silent_since;
  Clock::time_point last_check{};
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

// How long the other host has owed a response. To be called at intervals of at most `longest_gap`.
std::chrono::nanoseconds silent_for(Line& line, Clock::time_point now, std::chrono::nanoseconds longest_gap);

// Asks, once, to clear the armed flag when the line is ready, unless buffered input makes it ready now.
inline void arm(Line& line, Direction direction) {
  if (direction == Direction::Write || !line.holds_input()) line.readiness->arm(line, direction);
}

// Identifies a channel in errors.
struct Route {
  Rank self = -1;
  Rank peer = -1;
  int channel = 0;
  std::string address;  // of the peer, as text
};

// "send to rank 3 at 10.0.0.7:4100 (channel 0): <reason>", with the peer in peers(). `number` is an errno or 0.
Status peer_error(Code code, const Route& route, const char* action, const std::string& reason, int number = 0);

}  // namespace ccom::tcp
