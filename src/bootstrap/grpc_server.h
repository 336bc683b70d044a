// SPDX-License-Identifier: Apache-2.0
//
// gRPC's server for the requests of other hosts (rendezvous.proto), to the server of a rendezvous or to a relay. Always
// TLS with mutual authentication by the job's secret (tls_identity.h); there is no plain-text mode.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/descriptor.h"
#include "base/secret.h"
#include "base/status.h"
#include "bootstrap/pending_call.h"

namespace ccom {

namespace wire {
class Request;
}

// Uses gRPC's callback API, so a request that waits holds no thread.
class GrpcServer {
 public:
  struct Handler {
    // Answers the call, now or later, also where it has no memory. Throws nothing.
    std::function<void(wire::Request& request, PendingCall* call)> handle;
    // Nobody waits for that call any more: the connection was lost, or the peer gave up. It may be one that has been
    // answered, and still has to be if it has not.
    std::function<void(PendingCall* call)> cancel;
  };

  // handler: called by gRPC's threads. Listens nowhere: connections come by take().
  static Result<std::unique_ptr<GrpcServer>> start(const Secret& secret, Handler handler);
  // Calls that have not been answered are cancelled after `grace` at the latest; those have to be answered, too.
  void shut_down(std::chrono::milliseconds grace);
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Any thread, before shut_down(). listener: where it has come from.
  void take(Descriptor connection, int listener);

 private:
  class Impl;
  explicit GrpcServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccom
