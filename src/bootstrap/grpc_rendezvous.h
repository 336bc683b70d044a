// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous over gRPC: one process serves the meeting, every rank is a client of it. Always TLS, both sides proving
// that they hold the secret (tls_identity.h); there is no plain-text mode. Lives during initialisation only: afterwards
// no port, no thread and no object of gRPC is left, so a later fork is safe.
//
// Process-wide effects on a program that shares gRPC's library with ccom: while a server or client of ours exists,
// gRPC's log goes to ccom's log hook at debug level; afterwards to gRPC's default again. With GRPC_VERBOSITY set in the
// environment, or ccom linked to a private copy of gRPC, nothing of the program's is touched.
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

// A meeting point. Thread-safe. Runs one thread of its own, plus gRPC's, until it ends.
class RendezvousServer {
 public:
  struct Options {
    std::string address;  // numeric, no wildcard
    uint16_t port = 0;    // 0: any free one
    Secret secret;
    // It ends when every rank has come and left, and at this time whatever happens.
    Deadline life = Deadline::after_ms(0);
    // Called by the server's thread once the port is closed. Optional.
    std::function<void()> on_end{};
  };

  // Returns once the port is open. A ConfigError for a wildcard, a SystemError with the reason if the port cannot be
  // had.
  static Result<std::unique_ptr<RendezvousServer>> start(Options options);
  // Ends the meeting at once if it still runs. Bounded by a few seconds.
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  uint16_t port() const;
  // The port is closed and nothing of gRPC is left.
  bool has_ended() const;
  // False if it still runs at the deadline.
  bool wait_until_ended(Deadline deadline) const;

 private:
  class Impl;
  explicit RendezvousServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Rank `rank` of `nranks` comes to the meeting point, which may appear later: blocking, until the deadline. Rank 0
// starts it first if the id says so. Errors: Timeout "rank 3 cannot reach the meeting point 10.0.0.7:4100: ..." ;
// ConfigError if whoever listens there does not hold the secret, or if the ranks contradict each other. The destructor
// of the rendezvous tells the meeting point that this rank is through (bounded by 2 s).
Result<std::unique_ptr<Rendezvous>> connect_rendezvous(const UniqueId& id, int nranks, Rank rank, Deadline deadline);

// Whether a meeting point that holds the secret answers at id's address and would let this rank in. Does not join.
Status probe_meeting_point(const UniqueId& id, int nranks, Rank rank, Deadline deadline);

}  // namespace ccom
