// SPDX-License-Identifier: Apache-2.0
//
// Socket helpers for control connections: numeric TCP addresses such as "10.0.0.7:4100" and
// "[fd00::7]:4100". All sockets are non-blocking and close on exec.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/descriptor.h"
#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/tls.h"
#include "base/types.h"

namespace ccom {

// A connection, encrypted or not.
class ControlSocket {
 public:
  explicit ControlSocket(Descriptor socket) : socket_(std::move(socket)) {}
  // Null: not encrypted.
  static Result<ControlSocket> make(Descriptor socket, std::shared_ptr<const TlsContext> context, Tls::Side side);

  int fd() const { return socket_.get(); }
  const Descriptor& descriptor() const { return socket_; }
  bool is_encrypted() const { return tls_ != nullptr; }
  void close() {
    tls_.reset();
    socket_ = Descriptor();
  }
  // To be continued until it is Done, before anything is sent.
  Tls::Step secure() { return tls_ == nullptr ? Tls::Step::Done : tls_->handshake(); }
  // Like send and recv without blocking. What send() has not taken must be passed again first, at least as much of it.
  ssize_t send(ConstBytes bytes);
  ssize_t receive(Bytes bytes);

 private:
  Descriptor socket_;
  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<Tls> tls_;
};

// ConfigError unless it is the numeric address of one interface.
Result<Descriptor> listen_on(const std::string& ip, const PortRange& ports);
Result<std::string> address_of(const Descriptor& listener);
// Starts to connect; the socket becomes writable on success or failure.
Result<Descriptor> start_connect(const std::string& address);
// 0, or the errno of the failed connection.
int connect_outcome(const Descriptor& socket);

}  // namespace ccom
