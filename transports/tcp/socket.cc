// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/socket.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>
#include <charconv>

namespace ccom::tcp {
namespace {

ErrorCode last_error() { return {errno, boost::system::system_category()}; }

// Takes ownership of fd, also on error.
template <typename Owner>
ErrorCode adopt(Owner& owner, const asio::ip::tcp& protocol, int fd) {
  ErrorCode failure;
  owner.assign(protocol, fd, failure);
  if (failure) {
    ::close(fd);
    return failure;
  }
  owner.native_non_blocking(true, failure);
  return failure;
}

asio::ip::tcp protocol_of(const asio::ip::address& address) {
  return address.is_v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
}

// Asio's own sockets are inherited by children of fork and exec.
int new_descriptor(const asio::ip::address& address) {
  return ::socket(protocol_of(address).family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
}

void set_option(int fd, int level, int name, int value) {
  // A kernel that does not know one of them still carries data.
  (void)::setsockopt(fd, level, name, &value, sizeof(value));
}

}  // namespace

std::string to_text(const Endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]:" : address + ":") + std::to_string(endpoint.port());
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  const Status malformed =
      error(Code::InvalidArgument, "TCP address \"%.200s\": expected ip:port or [ip]:port", text.c_str());
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return malformed;
  std::string host = text.substr(0, colon);
  const bool has_brackets = host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  ErrorCode failure;
  const auto address = asio::ip::make_address(host, failure);
  if (failure || parsed.ec != std::errc() || parsed.ptr != end || port == 0 || address.is_v6() != has_brackets)
    return malformed;
  return Endpoint(address, port);
}

Result<asio::ip::address> parse_bind_address(const std::string& text) {
  ErrorCode failure;
  const auto address = asio::ip::make_address(text, failure);
  if (failure)
    return error(Code::ConfigError, "TCP bind address \"%.200s\": not an IPv4 or IPv6 address", text.c_str());
  if (address.is_unspecified() || address.is_multicast()) {
    return error(Code::ConfigError, "TCP bind address %s: names no single host", text.c_str())
        .with_cure("name an address of one interface; CCOM_SOCKET_IFNAME chooses it");
  }
  return address;
}

Status listen_at(Acceptor& acceptor, const asio::ip::address& address) {
  const int fd = new_descriptor(address);
  ErrorCode failure = fd < 0 ? last_error() : adopt(acceptor, protocol_of(address), fd);
  if (!failure) acceptor.bind(Endpoint(address, 0), failure);
  if (!failure) acceptor.listen(SOMAXCONN, failure);
  if (!failure) return Status::ok();
  return system_error(failure.value(), "listen at %s", address.to_string().c_str()).with_host(address.to_string());
}

ErrorCode accept_one(Acceptor& acceptor, Socket& socket) {
  const int fd = ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return last_error();
  ErrorCode failure;
  const Endpoint here = acceptor.local_endpoint(failure);
  if (failure) {
    ::close(fd);
    return failure;
  }
  return adopt(socket, here.protocol(), fd);
}

ErrorCode open_from(Socket& socket, const asio::ip::address& source) {
  const int fd = new_descriptor(source);
  ErrorCode failure = fd < 0 ? last_error() : adopt(socket, protocol_of(source), fd);
  if (failure) return failure;
  set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);  // connect() chooses the port, so that pairs may share it
  socket.bind(Endpoint(source, 0), failure);
  return failure;
}

// Buffers are left to the kernel, which sizes them by what the path holds; setting them would cap it.
//
// TCP_USER_TIMEOUT is not used: Linux also counts the time during which the peer's window is closed, so a rank that is
// merely late with its receive would be cut off (tests/transport_tcp: ASlowReceiverIsNotADeadOne). A host that falls
// silent is noticed by liveness after seconds, by keepalive after half a minute.
void set_options(Socket& socket) {
  const int fd = socket.native_handle();
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

bool is_hung_up(int fd) {
  pollfd entry{.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

size_t unacknowledged_bytes(int fd) {
  // A reset connection keeps its last count for ever; its state tells.
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_state == TCP_CLOSE) return 0;
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

// MSG_TRUNC on TCP: the kernel drops the bytes instead of copying them. A peer may send faster than we discard.
void discard_input(int fd) {
  constexpr int kMostCalls = 16;
  for (int calls = 0; calls < kMostCalls; ++calls) {
    if (::recv(fd, nullptr, size_t{1} << 20, MSG_DONTWAIT | MSG_TRUNC) <= 0) return;
  }
}

}  // namespace ccom::tcp
