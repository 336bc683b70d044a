// SPDX-License-Identifier: Apache-2.0
//
// Sockets: options, addresses as text, and system calls that Asio does not wrap.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/types.h"

namespace ccom::tcp {

namespace asio = boost::asio;
using Endpoint = asio::ip::tcp::endpoint;
using ErrorCode = boost::system::error_code;

// Asio's socket, whose descriptor is a Descriptor: a forked child does not share it.
class Socket final : public asio::ip::tcp::socket {
 public:
  explicit Socket(asio::io_context& io) : asio::ip::tcp::socket(io) {}
  Socket(Socket&&) noexcept = default;
  Socket& operator=(Socket&&) = delete;
  ~Socket() { close(); }

  ErrorCode assign(const asio::ip::tcp& protocol, Descriptor fd) {
    ErrorCode failure;
    asio::ip::tcp::socket::assign(protocol, fd.get(), failure);
    if (failure) return failure;
    descriptor_ = std::move(fd);
    native_non_blocking(true, failure);
    return failure;
  }
  // Operations under way end with operation_aborted.
  Descriptor detach() {
    ErrorCode ignored;
    if (is_open()) release(ignored);
    return std::move(descriptor_);
  }
  void close() { const Descriptor closed = detach(); }

 private:
  Descriptor descriptor_;
};

// "10.0.0.7:4100", "[fd00::7]:4100".
std::string to_text(const Endpoint& endpoint);
Result<Endpoint> parse_endpoint(const std::string& text);
// Of a socket; an unspecified one if it has none.
Endpoint local_endpoint(int fd);
Endpoint remote_endpoint(int fd);
// Takes a connection that was accepted elsewhere.
ErrorCode adopt(Socket& socket, Descriptor accepted);
// A new socket bound to `source`, any port.
ErrorCode open_from(Socket& socket, const asio::ip::address& source);
// After connecting.
struct SocketOptions {
  std::chrono::milliseconds silence{
      6000};                 // an idle connection fails when the other host has not responded for that long
  bool short_queue = false;  // limit unsent data in the kernel
};
void set_options(Socket& socket, const SocketOptions& options);

// The peer has closed its side, or the connection is lost. Detected even with unread data.
bool is_hung_up(int fd);
// Bytes not acknowledged by the peer, end of stream included; 0 once the connection is gone.
size_t unacknowledged_bytes(int fd);
// The same, but those that a lost connection has left count.
size_t unsettled_bytes(int fd);
// Whether the other host owes a response (a segment or window probe was retransmitted), and how long ago anything was
// received.
struct Silence {
  bool is_response_due = false;
  std::chrono::milliseconds since_answer{0};
};
Silence query_silence(int fd);
// Whether the port of a socket that does not listen may be bound to another one, of this user's or not.
void share_port(int fd, bool shares);
// Nothing that is still queued is sent; the peer gets a reset.
void reset_on_close(int fd);
// Discards received data.
void discard_input(int fd);

}  // namespace ccom::tcp
