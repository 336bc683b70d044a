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

// Asio's socket or acceptor, whose descriptor is a Descriptor: a forked child does not share it.
template <typename Asio>
class Owning final : public Asio {
 public:
  explicit Owning(asio::io_context& io) : Asio(io) {}
  Owning(Owning&&) noexcept = default;
  Owning& operator=(Owning&&) = delete;
  ~Owning() { close(); }

  ErrorCode assign(const asio::ip::tcp& protocol, Descriptor fd) {
    ErrorCode failure;
    Asio::assign(protocol, fd.get(), failure);
    if (failure) return failure;
    descriptor_ = std::move(fd);
    this->native_non_blocking(true, failure);
    return failure;
  }
  // Operations under way end with operation_aborted.
  void close() {
    ErrorCode ignored;
    if (this->is_open()) this->release(ignored);
    descriptor_ = Descriptor();
  }

 private:
  Descriptor descriptor_;
};
using Socket = Owning<asio::ip::tcp::socket>;
using Acceptor = Owning<asio::ip::tcp::acceptor>;

// "10.0.0.7:4100", "[fd00::7]:4100".
std::string to_text(const Endpoint& endpoint);
Result<Endpoint> parse_endpoint(const std::string& text);
// Listens at `address`, an IPv4 or IPv6 literal.
Status open_listener(Acceptor& acceptor, const std::string& address, const PortRange& ports);
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
// Whether the other host owes a response (a segment or window probe was retransmitted), and how long ago anything was
// received.
struct Silence {
  bool is_response_due = false;
  std::chrono::milliseconds since_answer{0};
};
Silence query_silence(int fd);
// Nothing that is still queued is sent; the peer gets a reset.
void reset_on_close(int fd);
// Discards received data.
void discard_input(int fd);

}  // namespace ccom::tcp
