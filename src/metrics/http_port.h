// SPDX-License-Identifier: Apache-2.0
//
// Answers GET /metrics on a loopback port: one request per connection, few connections at once, each for a few seconds
// at most, whatever clients do.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/status.h"
#include "base/time.h"

namespace ccom {

// Belongs to one thread, which waits for what watch() names and calls serve() then.
class HttpPort {
 public:
  static constexpr size_t kMostConnections = 64;  // the oldest makes room
  static constexpr std::chrono::seconds kPatience{5};

  // text: what the page says, made for each request.
  static Result<std::unique_ptr<HttpPort>> open(const std::string& address, uint16_t port,
                                                std::function<std::string()> text);
  ~HttpPort();

  uint16_t port() const { return port_; }
  // Adds what to wait for.
  void watch(std::vector<pollfd>& polled) const;
  // Does what can be done without waiting. True: somebody has come; the thread should rest before it looks again, so
  // that clients who come without end cost little.
  bool serve();

 private:
  class Connection;
  HttpPort(Descriptor listener, uint16_t port, std::function<std::string()> text);
  Descriptor listener_;
  const uint16_t port_;
  const std::function<std::string()> text_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace ccom
