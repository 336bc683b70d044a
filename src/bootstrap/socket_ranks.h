// SPDX-License-Identifier: Apache-2.0
//
// The ranks that reach the server of a rendezvous through its socket, because they run on its host: what they say goes
// to the gathering, and what comes of it to them.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "base/time.h"
#include "bootstrap/answers.h"
#include "bootstrap/gathering.h"
#include "bootstrap/relay_ranks.h"

namespace ccom {

// Belongs to the server's thread. `gathering` and `server`: to be locked meanwhile.
class SocketRanks {
 public:
  explicit SocketRanks(RelayPlace place) : place_(place), ranks_(std::move(place), RelaySocket()) {}

  // Opens the socket. A process that has just been killed may still have it: again, later.
  bool listen();
  // Ends all connections, too.
  void close() {
    ranks_.stop_listening();
    ranks_.all().clear();
  }
  // Reads and writes what can be; waits for something to come that long, or until `wake` is readable.
  void step(std::chrono::milliseconds longest, int wake) { (void)ranks_.step(longest, wake); }
  // Takes what ranks have said, and that connections have ended.
  void hear(Gathering& gathering, ServerProcess& server);
  // Tells them what they wait for, if it is there.
  void settle(const Gathering& gathering, const ServerProcess& server);
  // Of those that wait.
  bool are_waiting() const;
  Deadline next_limit(Deadline at_most) const;
  const RelayedRank* find_late() const;  // null: none

 private:
  void hear_from(RelayedRank& rank, Gathering& gathering, ServerProcess& server);

  const RelayPlace place_;
  RelayRanks ranks_;
};

}  // namespace ccom
