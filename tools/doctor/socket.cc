// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/options.h"
#include "base/tcp_socket.h"

namespace ccom::doctor {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// length 0 if the text is not a numeric address.
SocketAddress socket_address(const std::string& text, uint16_t port) {
  SocketAddress address;
  auto* ipv4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* ipv6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (::inet_pton(AF_INET, text.c_str(), &ipv4->sin_addr) == 1) {
    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons(port);
    address.length = sizeof *ipv4;
  } else if (::inet_pton(AF_INET6, text.c_str(), &ipv6->sin6_addr) == 1) {
    ipv6->sin6_family = AF_INET6;
    ipv6->sin6_port = htons(port);
    address.length = sizeof *ipv6;
  }
  return address;
}

Opened failed(int failure) { return {.socket = Descriptor(), .failure = failure}; }

// 0 when ready, ETIMEDOUT at the deadline.
int await(int socket, short events, Deadline deadline) {
  pollfd entry{.fd = socket, .events = events, .revents = 0};
  while (true) {
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<int64_t>(deadline.left_ms() + 1, 60'000)));
    if (ready > 0) return 0;
    if (ready < 0 && errno != EINTR) return errno;
    if (deadline.passed()) return ETIMEDOUT;
  }
}

}  // namespace

Opened listen_at(const std::string& address, uint16_t& port) {
  const auto ports = parse_port_range(option("CCOM_PORT_RANGE"));
  if (!ports) return failed(EINVAL);
  auto socket = ccom::listen_at(address, *ports, 128);
  if (!socket) return failed(socket.error().sys_errno() != 0 ? socket.error().sys_errno() : EADDRINUSE);
  SocketAddress where;
  where.length = sizeof where.storage;
  if (::getsockname(socket->get(), where.get(), &where.length) != 0) return failed(errno);
  const auto network_order = where.storage.ss_family == AF_INET
                                 ? reinterpret_cast<const sockaddr_in*>(&where.storage)->sin_port
                                 : reinterpret_cast<const sockaddr_in6*>(&where.storage)->sin6_port;
  port = ntohs(network_order);
  return {.socket = *std::move(socket)};
}

Opened connect_to(const std::string& address, uint16_t port, Deadline deadline) {
  SocketAddress where = socket_address(address, port);
  Descriptor socket(::socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return failed(errno);
  if (::connect(socket.get(), where.get(), where.length) != 0) {
    if (errno != EINPROGRESS) return failed(errno);
    if (const int late = await(socket.get(), POLLOUT, deadline); late != 0) return failed(late);
    int reason = 0;
    socklen_t length = sizeof reason;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &reason, &length) != 0) reason = errno;
    if (reason != 0) return failed(reason);
  }
  const int yes = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return {.socket = std::move(socket)};
}

Opened accept_from(int listener, Deadline deadline) {
  if (await(listener, POLLIN, deadline) != 0) return failed(EAGAIN);
  Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return failed(errno);
  return {.socket = std::move(socket)};
}

int send_all(int socket, ConstBytes bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      if (const int late = await(socket, POLLOUT, deadline); late != 0) return late;
    } else {
      return errno;
    }
  }
  return 0;
}

int receive_all(int socket, Bytes bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<size_t>(got));
    } else if (got == 0) {
      return ECONNRESET;
    } else if (errno == EAGAIN || errno == EINTR) {
      if (const int late = await(socket, POLLIN, deadline); late != 0) return late;
    } else {
      return errno;
    }
  }
  return 0;
}

int path_mtu(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  return static_cast<int>(info.tcpi_pmtu);
}

}  // namespace ccom::doctor
