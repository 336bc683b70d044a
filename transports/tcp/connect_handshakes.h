// SPDX-License-Identifier: Apache-2.0
//
// The accepting and the dialling half of one handshake, as chains of asynchronous steps (hello.h says which). Both keep
// themselves alive while a step is under way; a closed socket or cancelled timer ends the chain at its next step.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "transports/tcp/async_line.h"
#include "transports/tcp/connection_setup.h"

namespace ccom::tcp {

class ConnectionSetup::AcceptHandshake : public std::enable_shared_from_this<AcceptHandshake> {
 public:
  AcceptHandshake(ConnectionSetup& setup, Socket socket);
  void start();
  void close();

 private:
  // A handler that goes on with `next`, or refuses.
  Handler then(void (AcceptHandshake::*next)());
  void watch(std::chrono::milliseconds patience);
  void on_secure();
  void on_hello();
  void on_answered();
  void on_confirm();
  void refuse();

  ConnectionSetup& setup_;
  std::unique_ptr<Line> line_;
  asio::steady_timer timer_;
  bool is_late_ = false;
  Status settings_;
  std::array<Hello, 3> transcript_;
};

class ConnectionSetup::ConnectAttempt : public std::enable_shared_from_this<ConnectAttempt> {
 public:
  struct Way {
    asio::ip::address from;
    Endpoint to;
  };
  ConnectAttempt(ConnectionSetup& setup, LineId id, Expected& expected, Way way);
  void start();
  void close();

 private:
  void on_connected();
  void on_secure();
  void on_hello_sent();
  void on_answer();
  void on_proved();
  void retry(const std::string& trouble);
  // A handler that goes on with `next`, or tries again.
  Handler then(void (ConnectAttempt::*next)(), const char* action);

  ConnectionSetup& setup_;
  const LineId id_;
  Expected& expected_;
  const Way way_;
  std::unique_ptr<Line> line_;  // of this attempt
  asio::steady_timer timer_;
  std::chrono::milliseconds pause_{1};
  bool is_connected_ = false;   // this attempt
  bool was_connected_ = false;  // one before it
  bool is_closed_ = false;
  std::array<Hello, 3> transcript_;
};

}  // namespace ccom::tcp
