// SPDX-License-Identifier: Apache-2.0
//
// Accepts connections for a gRPC server, which needs not exist before the first has come. gRPC 1.51's own listener is
// closed for good when accept() finds no free descriptor (CVE-2023-4785), and each connection costs it buffers before a
// byte has arrived.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/descriptor.h"
#include "base/secret.h"
#include "base/status.h"
#include "base/types.h"
#include "base/unproved.h"
#include "bootstrap/plain_probe.h"

namespace ccom {

// Whether a ClientHello asks for the server of that name. Names are long and random, so what stands anywhere in it
// does.
bool asks_for(ConstBytes hello, std::string_view name);

// Hands over connections on which a TLS ClientHello has arrived that asks for this server by name, which only holders
// of the secret know (tls_identity.h): gRPC would keep any other for five seconds, until its handshake times out.
// Answers probes (plain_probe.h) itself. Runs one thread between start() and stop().
class ConnectionIntake {
 public:
  // Takes a connection, and the number of the listener. Called by the intake's thread; may throw std::bad_alloc.
  using Take = std::function<void(Descriptor connection, int listener)>;

  // Opens the port; 0: any free one. admits: what probes hear; null: they are strangers.
  // ConfigError for a wildcard address; the system's error if the port cannot be had.
  static Result<std::unique_ptr<ConnectionIntake>> listen(const std::string& address, uint16_t port,
                                                          const Secret& secret, Take take, WouldAdmit admits = nullptr);
  ~ConnectionIntake() { stop(); }
  ConnectionIntake(const ConnectionIntake&) = delete;
  ConnectionIntake& operator=(const ConnectionIntake&) = delete;

  uint16_t port() const { return port_; }
  Status start();
  // Closes the port. To be called before the server is shut down.
  void stop();

 private:
  ConnectionIntake(UnprovedConnections arriving, std::string name, Take take, std::optional<PlainAnswers> answers)
      : arriving_(std::move(arriving)), name_(std::move(name)), take_(std::move(take)), answers_(std::move(answers)) {}
  void run();
  void hand_over(Descriptor connection);

  UnprovedConnections arriving_;
  const std::string name_;
  const Take take_;
  const std::optional<PlainAnswers> answers_;
  Descriptor listener_;
  Descriptor stop_;  // an eventfd
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace ccom
