// SPDX-License-Identifier: Apache-2.0
//
// Socket helpers for control connections: a descriptor owner, and numeric TCP addresses such as "10.0.0.7:4100" and
// "[fd00::7]:4100". All sockets are non-blocking and close on exec.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"
#include "base/tcp_socket.h"

namespace ccom {

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// ConfigError unless it is the numeric address of one interface.
Result<OwnedFd> listen_on(const std::string& ip, const PortRange& ports);
Result<std::string> address_of(const OwnedFd& listener);
// Starts to connect; the socket becomes writable on success or failure.
Result<OwnedFd> start_connect(const std::string& address);
// 0, or the errno of the failed connection.
int connect_outcome(const OwnedFd& socket);
// Invalid if no connection is pending.
OwnedFd accept_from(const OwnedFd& listener);

}  // namespace ccom
