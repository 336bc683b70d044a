// SPDX-License-Identifier: Apache-2.0
//
// The server of a rendezvous. Ranks of its host reach it through a socket of the host (socket_ranks.h), others over TCP
// by gRPC (grpc_server.h), which is not used before the first of them comes. Exists during initialisation only:
// afterwards no port, thread or gRPC object remains.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/secret.h"
#include "base/status.h"
#include "base/time.h"

namespace ccom {

// A rendezvous server. Thread-safe. Runs two threads of its own, plus gRPC's, until it ends.
class RendezvousServer {
 public:
  struct Options {
    std::string address;  // numeric, no wildcard
    uint16_t port = 0;    // 0: any free port
    Secret secret;
    uint64_t communicator = 0;  // of the id: with the secret, the name of the socket
    // It ends when every rank has joined and left, and at this time in any case.
    Deadline life = Deadline::after_ms(0);
    // How many relays speak to it, beside that of rank 0, and to each of them, where they can; others speak to those
    // that have come before. Six: four levels for a thousand hosts.
    int relays = 6;
    // Called by the server's thread after the port is closed; throws nothing. Optional.
    std::function<void()> on_end{};
  };

  // Returns once the port is open. ConfigError for a wildcard address; SystemError with the reason if the port cannot
  // be bound.
  static Result<std::unique_ptr<RendezvousServer>> start(Options options);
  // Ends the rendezvous at once if it is still running. Takes a few seconds at most: where gRPC does not end, since a
  // std::bad_alloc has passed through it, what it uses stays until the process ends.
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  uint16_t port() const;
  // The port is closed and all gRPC objects are destroyed.
  bool has_ended() const;
  // False if it is still running at the deadline.
  bool wait_until_ended(Deadline deadline) const;

 private:
  class Impl;
  explicit RendezvousServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccom
