// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous over gRPC: one process runs the server, every rank is a client. Always TLS with mutual authentication by
// the job's secret (tls_identity.h); there is no plain-text mode. Exists during initialisation only: afterwards no
// port, thread or gRPC object remains, so a later fork is safe.
//
// Process-wide effects on a program that shares gRPC's library with ccom: while a server or client of ccom exists,
// gRPC's log goes to ccom's log hook at debug level; afterwards to gRPC's default. With GRPC_VERBOSITY set, or ccom
// linked to a private copy of gRPC, the program is not affected.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/secret.h"
#include "base/status.h"
#include "base/time.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// A rendezvous server. Thread-safe. Runs one thread of its own, plus gRPC's, until it ends.
class RendezvousServer {
 public:
  struct Options {
    std::string address;  // numeric, no wildcard
    uint16_t port = 0;    // 0: any free port
    Secret secret;
    // It ends when every rank has joined and left, and at this time in any case.
    Deadline life = Deadline::after_ms(0);
    // Called by the server's thread after the port is closed. Optional.
    std::function<void()> on_end{};
  };

  // Returns once the port is open. ConfigError for a wildcard address; SystemError with the reason if the port cannot
  // be bound.
  static Result<std::unique_ptr<RendezvousServer>> start(Options options);
  // Ends the rendezvous at once if it is still running. Takes a few seconds at most.
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

// Joins as rank `rank` of `nranks`; the server may start later. Blocks until the deadline. If the id says so, rank 0
// starts the server first. Errors: Timeout "rank 3 cannot reach the rendezvous server 10.0.0.7:4100: ..."; ConfigError
// if the listener does not hold the secret, or if ranks contradict each other. Destroying the rendezvous tells the
// server that this rank has finished (at most 2 s).
Result<std::unique_ptr<Rendezvous>> connect_rendezvous(const UniqueId& id, int nranks, Rank rank, Deadline deadline);

// Whether a server that holds the secret answers at id's address and would admit this rank. Does not join.
Status probe_rendezvous_server(const UniqueId& id, int nranks, Rank rank, Deadline deadline);

}  // namespace ccom
