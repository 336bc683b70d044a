// SPDX-License-Identifier: Apache-2.0
//
// Where relays of other hosts speak to this one as to the server of the rendezvous (host_relay.h): requests are kept
// until the relay's thread takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/status.h"
#include "base/tcp_socket.h"
#include "bootstrap/pending_call.h"
#include "bootstrap/rendezvous.pb.h"

namespace ccom {

struct RelayRequest {
  uint64_t number = 0;  // of the call; never used twice
  wire::Request request;
  PendingCall* call = nullptr;  // to be finished by who takes it; null: that call was cancelled, and still has to be
};

// TLS with mutual authentication by the job's secret, as the server.
class RelayServer {
 public:
  // Listens at the first free port of `ports`. Errors: see RendezvousServer::start().
  static Result<std::unique_ptr<RelayServer>> start(const std::string& address, const PortRange& ports,
                                                    const Secret& secret);
  // After end(), all of whose calls have been finished.
  ~RelayServer();
  RelayServer(const RelayServer&) = delete;
  RelayServer& operator=(const RelayServer&) = delete;

  const std::string& endpoint() const;
  // What has come since. Any thread.
  std::vector<RelayRequest> take();
  // The same; whoever comes from now on hears that this relay has ended.
  std::vector<RelayRequest> end();

 private:
  class Impl;
  explicit RelayServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The address of this host from which the kernel would speak to that one, both numeric; "" if there is none.
std::string address_towards(const std::string& address);

}  // namespace ccom
