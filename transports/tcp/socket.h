// SPDX-License-Identifier: Apache-2.0
//
// Sockets: the options we set, addresses as text, and the few system calls that Asio has no words for.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <string>

#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/types.h"

namespace ccom::tcp {

namespace asio = boost::asio;
using Endpoint = asio::ip::tcp::endpoint;
using Socket = asio::ip::tcp::socket;
using Acceptor = asio::ip::tcp::acceptor;
using ErrorCode = boost::system::error_code;

// "10.0.0.7:4100", "[fd00::7]:4100".
std::string to_text(const Endpoint& endpoint);
Result<Endpoint> parse_endpoint(const std::string& text);
// Listens at `address`, an IPv4 or IPv6 literal.
Status open_listener(Acceptor& acceptor, const std::string& address, const PortRange& ports);
// The next connection, or why there is none (would_block).
ErrorCode accept_one(Acceptor& acceptor, Socket& socket);
// A new socket bound to `source`, any port. Non-blocking and closed on exec, as all of ours.
ErrorCode open_from(Socket& socket, const asio::ip::address& source);
// Once connected.
struct SocketOptions {
  std::chrono::milliseconds silence{6000};  // an idle connection breaks if the other host answers nothing for so long
  bool short_queue = false;                 // the kernel takes little beyond what it can send at once
};
void set_options(Socket& socket, const SocketOptions& options);

// The peer has closed its side, or the connection is broken. Unread data does not hide it.
bool is_hung_up(int fd);
// Bytes that the peer has not acknowledged yet, its end of stream included; 0 once the connection is gone.
size_t unacknowledged_bytes(int fd);
// Whether the other host owes an answer: something sent, or a question whether it has room, was repeated in vain; and
// how long nothing at all has come from it.
struct Silence {
  bool is_owed = false;
  std::chrono::milliseconds since_answer{0};
};
Silence ask_silence(int fd);
// Throws away some of what has come in.
void discard_input(int fd);

}  // namespace ccom::tcp
