// SPDX-License-Identifier: Apache-2.0
//
// The accepting and the connecting side of one handshake, as chains of asynchronous steps (base/handshake.h). Each
// object keeps itself alive while a step is pending; a closed socket or cancelled timer ends the chain at its next
// step.
#pragma once

#include <memory>
#include <string>

#include "base/handshake.h"
#include "transports/tcp/async_line.h"
#include "transports/tcp/connection_setup.h"

namespace ccom::tcp {

class ConnectionSetup::AcceptHandshake : public std::enable_shared_from_this<AcceptHandshake> {
 public:
  AcceptHandshake(ConnectionSetup& setup, Socket socket);
  void start();
  void close();
  void refuse();

 private:
  // A handler that continues with `next`, or drops the connection.
  Handler then(void (AcceptHandshake::*next)());
  void watch(std::chrono::milliseconds timeout);
  bool begin_tls();
  void on_secure();
  void on_hello();
  void on_answered();
  void on_confirm();

  ConnectionSetup& setup_;
  std::unique_ptr<Line> line_;
  asio::steady_timer timer_;
  bool is_late_ = false;
  Handshake handshake_;
  HandshakeMessage message_;  // being read or written
  LineId id_;
  Status settings_;
};

class ConnectionSetup::ConnectAttempt : public std::enable_shared_from_this<ConnectAttempt> {
 public:
  struct Path {
    asio::ip::address from;
    Endpoint to;
  };
  ConnectAttempt(ConnectionSetup& setup, LineId id, Expected& expected, Path path);
  void start();
  void close();
  bool is_for(const LineId& id) const { return id_ == id; }
  // Since when the peer's kernel has not been reached; now, if it is.
  Clock::time_point unreached_since(Clock::time_point now) const { return is_connected_ ? now : reached_; }

 private:
  void on_connected();
  void on_secure();
  void on_hello_sent();
  void on_answer();
  void on_authenticated();
  void watch(Deadline answer);
  void retry(const std::string& reason);
  // A handler that continues with `next`, or retries.
  Handler then(void (ConnectAttempt::*next)(), const char* action);

  ConnectionSetup& setup_;
  const LineId id_;
  Expected& expected_;
  const Path path_;
  std::unique_ptr<Line> line_;  // of the current attempt
  asio::steady_timer timer_;
  std::chrono::milliseconds pause_{1};
  bool is_connected_ = false;  // in the current attempt
  Clock::time_point reached_{};
  bool was_connected_ = false;  // in an earlier attempt
  bool is_closed_ = false;
  std::string late_;  // why the current attempt was ended, until its pending step knows
  Handshake handshake_;
  HandshakeMessage message_;  // being read or written
};

}  // namespace ccom::tcp
