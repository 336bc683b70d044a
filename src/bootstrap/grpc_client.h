// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of a rendezvous over gRPC, with mutual authentication (grpc_server.h).
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "base/time.h"
#include "base/types.h"
#include "bootstrap/plain_probe.h"
#include "bootstrap/relay_use.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Joins as rank `rank` of `nranks`; the server may start later. Blocks until the deadline. If the id says so, rank 0
// starts the server first. Errors: Timeout "rank 3 cannot reach the rendezvous server 10.0.0.7:4100: ..."; ConfigError
// if the listener does not hold the secret, or if ranks contradict each other; Aborted, here and in exchanges, as soon
// as `interrupted`. Destroying the rendezvous tells the server that this rank has finished (at most 2 s).
Result<std::unique_ptr<Rendezvous>> connect_rendezvous(const UniqueId& id, int nranks, Rank rank, Deadline deadline,
                                                       Interrupted interrupted = {}, const RelayUse& relays = {});

// Joins where that is refused until the deadline, as a second rank 0 or with another number of ranks: the start that
// this disturbs ends with the same error then, on all its ranks. The refusal, or what a probe says.
Status join_to_be_refused(const UniqueId& id, int nranks, Rank rank, Deadline deadline);

// Whether a server that holds the secret answers at an id's address and would admit this rank. Does not join. Asks
// through the server's socket, or else in plain words (plain_probe.h); only where those do not bring a yes over gRPC,
// which says why.
class RendezvousProbe {
 public:
  RendezvousProbe(int nranks, Rank rank) : nranks_(nranks), rank_(rank) {}

  // An attempt to connect that has not ended at the deadline continues when the same id is asked about again: another
  // one would take both sides another handshake, and gRPC may keep the socket of one that is given up.
  Status ask(const UniqueId& id, Deadline deadline);

 private:
  const int nranks_;
  const Rank rank_;
  // Of the id that was asked about last.
  uint64_t communicator_ = 0;
  std::optional<PlainProbe> plain_{};
  Deadline plain_until_ = Deadline::after_ms(0);
  std::unique_ptr<Rendezvous> client_{};  // null: it was not needed yet
};

}  // namespace ccom
