// SPDX-License-Identifier: Apache-2.0
//
// The ranks of other hosts, which ask the server of a rendezvous by gRPC, for themselves or through a relay: what they
// say goes to the gathering, and what comes of it to them.
#pragma once

#include <map>
#include <optional>

#include "base/time.h"
#include "bootstrap/answers.h"
#include "bootstrap/gathering.h"
#include "bootstrap/pending_call.h"
#include "bootstrap/presences.h"
#include "bootstrap/relay_tree.h"

namespace ccom {

// Not thread-safe. `gathering` and `server`: of the server of the rendezvous.
class NetworkRanks {
 public:
  // relays: RendezvousServer::Options.
  NetworkRanks(int relays, Gathering& gathering, ServerProcess& server)
      : gathering_(gathering), server_(server), relays_(relays) {}

  void hear(wire::Request& request, PendingCall* call, FinishedCalls& finished);
  // Nobody waits for that call any more: the connection was lost, or the rank gave up.
  void cancel(PendingCall* call, FinishedCalls& finished);
  // There is no memory to answer it.
  void drop(PendingCall* call, FinishedCalls& finished);
  // Answers all requests that need not wait any longer. A failure ends presences: ranks that wait for each other
  // between two exchanges then ask for it.
  void settle(FinishedCalls& finished);
  void end_presences(FinishedCalls& finished) { present_.end_all(finished); }
  void refuse_all(FinishedCalls& finished);

  // Of those that wait.
  bool are_waiting() const { return !waiting_.empty(); }
  Deadline next_limit(Deadline at_most) const;
  struct Late {
    Rank rank;
    Clock::time_point since;
  };
  std::optional<Late> find_late() const;

 private:
  struct Waiter {
    PendingCall* call;
    uint64_t round;
    Deadline timeout;
    Clock::time_point since;
  };
  void leave_all(const std::vector<Caller>& callers, FinishedCalls& finished);
  bool is_absent(const Caller& caller) const;
  void add_waiter(Rank rank, uint64_t round, int64_t timeout_ms, PendingCall* call, FinishedCalls& finished);
  bool forget(const PendingCall* call, std::optional<Rank>& missed);  // false: it is not here

  Gathering& gathering_;
  ServerProcess& server_;
  std::map<Rank, Waiter> waiting_;
  RelayTree relays_;
  const AnswerText nothing_ = encode(Status::ok(), ServerProcess{});  // to who does not read it
  Presences present_ = Presences(nothing_);
};

}  // namespace ccom
