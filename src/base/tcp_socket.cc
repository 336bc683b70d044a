// SPDX-License-Identifier: Apache-2.0
#include "base/tcp_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace ccom {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size_bytes = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& v6() { return reinterpret_cast<sockaddr_in6&>(storage); }
  void set_port(uint16_t port) { (family() == AF_INET ? v4().sin_port : v6().sin6_port) = htons(port); }
};

Result<Address> parse_literal(const std::string& ip) {
  Address address;
  bool names_no_host = false;
  if (::inet_pton(AF_INET, ip.c_str(), &address.v4().sin_addr) == 1) {
    address.storage.ss_family = AF_INET;
    address.size_bytes = sizeof(sockaddr_in);
    const uint32_t host = ntohl(address.v4().sin_addr.s_addr);
    names_no_host = host == INADDR_ANY || IN_MULTICAST(host) || host == INADDR_BROADCAST;
  } else if (::inet_pton(AF_INET6, ip.c_str(), &address.v6().sin6_addr) == 1) {
    address.storage.ss_family = AF_INET6;
    address.size_bytes = sizeof(sockaddr_in6);
    const in6_addr& host = address.v6().sin6_addr;
    const bool is_mapped_any = IN6_IS_ADDR_V4MAPPED(&host) && host.s6_addr32[3] == 0;
    names_no_host = IN6_IS_ADDR_UNSPECIFIED(&host) || IN6_IS_ADDR_MULTICAST(&host) || is_mapped_any;
  } else {
    return error(Code::ConfigError, "bind address \"%.200s\": not an IPv4 or IPv6 address", ip.c_str());
  }
  if (!names_no_host) return address;
  return error(Code::ConfigError, "bind address %s: not the address of a single interface", ip.c_str())
      .with_cure("use the address of one interface; CCOM_SOCKET_IFNAME selects it");
}

constexpr int kNotYet = -1;  // instead of a backlog

// SO_REUSEADDR: connections of an earlier job in TIME_WAIT do not block the port. Another listener does, which Linux
// reports at listen() if that one was not listening yet at bind(). A port that is only kept is given to nobody.
Result<Descriptor> try_port(Address address, uint16_t port, int backlog) {
  address.set_port(port);
  Descriptor socket = new_tcp_socket(address.family());
  const int shares = backlog == kNotYet ? 0 : 1;
  if (socket.is_open() && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &shares, sizeof shares) == 0 &&
      ::bind(socket.get(), address.get(), address.size_bytes) == 0 &&
      (backlog == kNotYet || ::listen(socket.get(), backlog) == 0)) {
    return socket;
  }
  return system_error(errno, "listen");
}

void set_option(int fd, int level, int name, int value) {
  // A kernel without one of these options still transfers data.
  (void)::setsockopt(fd, level, name, &value, sizeof(value));
}

}  // namespace

Descriptor new_tcp_socket(int family) {
  return Descriptor::from([&] { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); });
}

Result<Descriptor> begin_to_connect(const std::string& ip, uint16_t port) {
  CCOM_TRY_ASSIGN(Address address, parse_literal(ip));
  address.set_port(port);
  Descriptor socket = new_tcp_socket(address.family());
  if (!socket.is_open()) return system_error(errno, "open a socket");
  if (::connect(socket.get(), address.get(), address.size_bytes) != 0 && errno != EINPROGRESS && errno != EINTR)
    return system_error(errno, "connect");
  return socket;
}

Result<HostPort> parse_host_port(std::string_view text) {
  const auto invalid = [text](const char* why) {
    return error(Code::InvalidArgument, "address '%.*s': %s", static_cast<int>(text.size()), text.data(), why)
        .with_cure("use host:port or [IPv6 address]:port");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return invalid("missing port");
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return invalid("IPv6 addresses must be in brackets");
  }
  if (host.empty() || host.size() > 253) return invalid("missing or overlong host name");
  uint16_t port = 0;
  const auto [end, failure] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  if (failure != std::errc() || end != text.data() + text.size() || port == 0) {
    return invalid("the port is not a number from 1 to 65535");
  }
  return HostPort{std::string(host), port};
}

std::string endpoint_text(const std::string& host, uint16_t port) {
  const std::string number = std::to_string(port);
  return host.find(':') == std::string::npos ? host + ":" + number : "[" + host + "]:" + number;
}

Result<PortRange> parse_port_range(std::string_view text) {
  if (text.empty()) return PortRange{};
  PortRange range;
  const char* const end = text.data() + text.size();
  const auto low = std::from_chars(text.data(), end, range.low);
  const bool has_two = low.ec == std::errc() && low.ptr != end && *low.ptr == '-';
  const auto high = has_two ? std::from_chars(low.ptr + 1, end, range.high) : low;
  if (has_two && high.ec == std::errc() && high.ptr == end && range.low > 0 && range.low <= range.high) return range;
  return error(ErrorKey::VariableValue, "CCOM_PORT_RANGE=\"%.200s\": expected LOW-HIGH, two ports from 1 to 65535",
               std::string(text).c_str());
}

Result<Descriptor> keep_port_at(const std::string& ip, const PortRange& ports) { return listen_at(ip, ports, kNotYet); }

Result<Descriptor> listen_at_port(const std::string& ip, uint16_t port, int backlog) {
  CCOM_TRY_ASSIGN(const Address address, parse_literal(ip));
  return try_port(address, port, backlog);
}

Result<Descriptor> listen_at(const std::string& ip, const PortRange& ports, int backlog) {
  CCOM_TRY_ASSIGN(const Address address, parse_literal(ip));
  int number = 0;
  for (int port = ports.low; port <= ports.high; ++port) {
    Result<Descriptor> socket = try_port(address, static_cast<uint16_t>(port), backlog);
    if (socket) return socket;
    number = socket.error().sys_errno();
    if (number != EADDRINUSE && number != EACCES) break;
  }
  if (ports.is_any() || (number != EADDRINUSE && number != EACCES)) {
    return system_error(number, "listen at %s", ip.c_str()).with_key(ErrorKey::CannotListen);
  }
  return error(ErrorKey::NoFreePort, "listen at %s: every port of CCOM_PORT_RANGE=%d-%d is in use", ip.c_str(),
               ports.low, ports.high)
      .with_errno(number)
      .with_cure("widen CCOM_PORT_RANGE; docs/tcp.md says how many ports a host needs");
}

void disable_nagle(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Three probes in the second half: one lost reply must not break a connection, and a host with thousands of idle
// connections must not spend its time with more. The kernel counts whole seconds.
void enable_keepalive(int fd, std::chrono::milliseconds silence) {
  constexpr int kProbes = 3, kSteps = 2 * kProbes;
  constexpr int64_t kLongestStep = 3600;
  const int64_t step = (silence.count() + int64_t{kSteps} * 1000 - 1) / (int64_t{kSteps} * 1000);
  const int step_seconds = static_cast<int>(std::clamp<int64_t>(step, 1, kLongestStep));
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (kSteps - kProbes) * step_seconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, step_seconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

void set_user_timeout(int fd, std::chrono::milliseconds silence) {
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(std::clamp<int64_t>(silence.count(), 1, int64_t{1} << 30)));
}

}  // namespace ccom
