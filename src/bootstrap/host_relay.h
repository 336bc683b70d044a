// SPDX-License-Identifier: Apache-2.0
//
// One process of a host speaks to the server of a rendezvous for all ranks of the host: the server has a connection per
// host, hears what ranks say in a few requests, and sends what all have said once. Who comes first becomes the relay;
// the others reach it over a unix socket (relay_line.h), and need nothing of gRPC.
//
// What ranks see is the same: a rank whose connection to the relay ends is lost, and named by the server; a relay whose
// connection to the server ends takes its own rank with it, which server and ranks both name.
//
// In large starts (RelayUse::most_in_star) the server has few relays speak to it, and sends others to those
// (relay_tree.h, relay_children.h): no process sends more than a few times what all ranks say.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "base/time.h"
#include "base/wait_limit.h"
#include "bootstrap/relay_line.h"
#include "bootstrap/relay_use.h"
#include "bootstrap/rendezvous.h"

namespace ccom {

namespace wire {
class Request;
}

// Joins through the relay of this host, of which this process may become the one. Nothing: the relay cannot be used,
// so that the rank has to speak for itself. Errors: those of connect_rendezvous().
Result<std::unique_ptr<Rendezvous>> join_by_relay(const UniqueId& id, const RelayUse& use, int nranks, Rank rank,
                                                  Deadline deadline, const Interrupted& interrupted);

// Joins through the socket of the server, which may start later. Nothing: the server has none for this process, so that
// the rank has to speak to it as those of other hosts do. Errors: those of connect_rendezvous().
Result<std::unique_ptr<Rendezvous>> join_by_socket(const UniqueId& id, int nranks, Rank rank, Deadline deadline,
                                                   const Interrupted& interrupted);

// Whether the server would admit this rank, asked through its socket. Nothing: it has none for this process.
std::optional<Status> probe_by_socket(const UniqueId& id, int nranks, Rank rank, Deadline deadline);

// The relay itself. Runs a thread until its end.
class HostRelay {
 public:
  // Connections arrive at `listener`. self: a rank of this process, in whose name the relay speaks.
  static Result<std::unique_ptr<HostRelay>> start(const UniqueId& id, const RelayUse& use, RelaySocket listener,
                                                  const wire::Request& self, Deadline deadline);
  // Once its own rank has left: waits until the others need it no longer, a few seconds at most.
  ~HostRelay();
  HostRelay(const HostRelay&) = delete;
  HostRelay& operator=(const HostRelay&) = delete;

 private:
  class Impl;
  explicit HostRelay(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccom
