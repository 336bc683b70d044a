// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>

namespace ccom::tcp {
namespace {

ErrorCode last_error() { return {errno, boost::system::system_category()}; }

asio::ip::tcp protocol_of(const asio::ip::address& address) {
  return address.is_v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
}

void set_option(int fd, int level, int name, int value) {
  // A kernel without one of these options still transfers data.
  (void)::setsockopt(fd, level, name, &value, sizeof(value));
}

template <typename Call>
Endpoint endpoint_by(Call call, int fd) {
  Endpoint endpoint(asio::ip::tcp::v6(), 0);
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (call(fd, reinterpret_cast<sockaddr*>(endpoint.data()), &size) != 0) return {};
  endpoint.resize(size);
  return endpoint;
}

// Both ends on one host: the connection crosses no network that could be congested.
bool is_local(const Socket& socket) {
  ErrorCode failed_here, failed_there;
  const asio::ip::address here = socket.local_endpoint(failed_here).address();
  const asio::ip::address there = socket.remote_endpoint(failed_there).address();
  return !failed_here && !failed_there && (here == there || (here.is_loopback() && there.is_loopback()));
}

}  // namespace

std::string to_text(const Endpoint& endpoint) { return endpoint_text(endpoint.address().to_string(), endpoint.port()); }

Result<Endpoint> parse_endpoint(const std::string& text) {
  const Result<HostPort> where = parse_host_port(text);
  ErrorCode failure;
  const auto address = where ? asio::ip::make_address(where->host, failure) : asio::ip::address();
  if (!where || failure || address.is_v6() != text.starts_with('[')) {
    return error(Code::InvalidArgument, "TCP address \"%.200s\": expected ip:port or [ip]:port", text.c_str());
  }
  return Endpoint(address, where->port);
}

Endpoint local_endpoint(int fd) { return endpoint_by(::getsockname, fd); }
Endpoint remote_endpoint(int fd) { return endpoint_by(::getpeername, fd); }

ErrorCode adopt(Socket& socket, Descriptor accepted) {
  int family = AF_INET;
  socklen_t length = sizeof family;
  if (::getsockopt(accepted.get(), SOL_SOCKET, SO_DOMAIN, &family, &length) != 0) return last_error();
  return socket.assign(family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), std::move(accepted));
}

ErrorCode open_from(Socket& socket, const asio::ip::address& source) {
  Descriptor fd = new_tcp_socket(protocol_of(source).family());  // Asio's own lack close-on-exec
  ErrorCode failure = fd.is_open() ? socket.assign(protocol_of(source), std::move(fd)) : last_error();
  if (failure) return failure;
  // connect() chooses the port, so that pairs can share it.
  set_option(socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  socket.bind(Endpoint(source, 0), failure);
  return failure;
}

// Buffer sizes are left to the kernel, which adapts them to the path; setting them would cap them. Where connections
// share a message, however, a slow one must not queue much more than it can send soon.
//
// TCP_USER_TIMEOUT is not used: Linux also counts time with a closed peer window, which would disconnect a rank that is
// merely late with its receive. Keepalives are not sent while data is unacknowledged either; ask_silence() covers that
// case.
//
// The host's congestion control is kept between hosts. Within one, Reno sends at once what the window allows, where BBR
// spreads it over time by timers: 25 MiB took 0.72 of the time, 64 KiB 0.69. Every user may choose Reno.
void set_options(Socket& socket, const SocketOptions& options) {
  constexpr int kShortQueueBytes = 128 << 10;
  constexpr char kLocalCongestionControl[] = "reno";
  const int fd = socket.native_handle();
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  enable_keepalive(fd, options.silence);
  if (options.short_queue) set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kShortQueueBytes);
  if (is_local(socket))
    (void)::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kLocalCongestionControl, sizeof kLocalCongestionControl);
}

// A peer with a closed window answers every window probe, except two within half a second
// (net.ipv4.tcp_invalid_ratelimit); probes back off, so at most one in a row is unanswered.
Silence query_silence(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return {};
  return {.is_response_due = info.tcpi_retransmits > 1 || info.tcpi_probes > 1,
          .since_answer = std::chrono::milliseconds(info.tcpi_last_ack_recv)};
}

bool is_hung_up(int fd) {
  pollfd entry{.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

size_t unacknowledged_bytes(int fd) {
  // A reset connection keeps its last counters, so its state must be checked.
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_state == TCP_CLOSE) return 0;
  return unsettled_bytes(fd);
}

size_t unsettled_bytes(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

void share_port(int fd, bool shares) {
  const int value = shares ? 1 : 0;
  (void)::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, sizeof value);
}

void reset_on_close(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

// MSG_TRUNC on TCP: the kernel drops the data without copying, so a peer cannot send faster than we discard.
void discard_input(int fd) {
  constexpr int kMaxCalls = 16;
  for (int calls = 0; calls < kMaxCalls; ++calls) {
    if (::recv(fd, nullptr, size_t{1} << 20, MSG_DONTWAIT | MSG_TRUNC) <= 0) return;
  }
}

}  // namespace ccom::tcp
