// SPDX-License-Identifier: Apache-2.0
#include "liveness/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace ccom {

namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Result<SocketAddress> parse_address(const std::string& text) {
  CCOM_TRY_ASSIGN(const HostPort where, parse_host_port(text));
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(where.port);
  if (const int failure = ::getaddrinfo(where.host.c_str(), port.c_str(), &hints, &found); failure != 0)
    return error(Code::ConfigError, "\"%s\" is not a numeric address: %s", text.c_str(), ::gai_strerror(failure));
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

Result<Descriptor> open_socket(int family) {
  Descriptor socket = new_tcp_socket(family);
  if (!socket.is_open()) return system_error(errno, "open a control socket");
  return socket;
}

}  // namespace

Result<ControlSocket> ControlSocket::make(Descriptor socket, std::shared_ptr<const TlsContext> context,
                                          Tls::Side side) {
  ControlSocket made(std::move(socket));
  if (context == nullptr) return made;
  made.tls_ = Tls::make(*context, made.fd(), side);
  made.context_ = std::move(context);
  if (made.tls_ == nullptr) return out_of_memory();
  return made;
}

ssize_t ControlSocket::send(ConstBytes bytes) {
  if (tls_ == nullptr) return ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return tls_->send({&part, 1});
}

ssize_t ControlSocket::receive(Bytes bytes) {
  if (tls_ == nullptr) return ::recv(fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  const iovec part{bytes.data(), bytes.size()};
  return tls_->receive({&part, 1});
}

Result<Descriptor> listen_on(const std::string& ip, const PortRange& ports) {
  Result<Descriptor> socket = listen_at(ip, ports, SOMAXCONN);
  if (!socket) return std::move(socket).error().in("control connections");
  return socket;
}

Result<std::string> address_of(const Descriptor& listener) {
  SocketAddress address;
  address.size = sizeof address.storage;
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.size) != 0)
    return system_error(errno, "get the address of a control socket");
  if (::getnameinfo(address.get(), address.size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return error(Code::InternalError, "format the address of a control socket");
  return (address.family() == AF_INET6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" + port;
}

Result<Descriptor> start_connect(const std::string& text) {
  CCOM_TRY_ASSIGN(const SocketAddress address, parse_address(text));
  CCOM_TRY_ASSIGN(Descriptor socket, open_socket(address.family()));
  disable_nagle(socket.get());
  if (::connect(socket.get(), address.get(), address.size) != 0 && errno != EINPROGRESS && errno != EINTR)
    return system_error(errno, "connect to %s", text.c_str());
  return socket;
}

int connect_outcome(const Descriptor& socket) {
  int failure = 0;
  socklen_t size = sizeof failure;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size) == 0 ? failure : errno;
}

}  // namespace ccom
