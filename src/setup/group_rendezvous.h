// SPDX-License-Identifier: Apache-2.0
//
// How the members of a group meet who belong to a communicator already: over its links.
//
// An all-gather in ceil(log2 n) rounds, in which each member receives from the one twice as far away as in the round
// before all that it has heard (Bruck et al., 1997, "Efficient algorithms for all-to-all communications in multiport
// message-passing systems"): each string crosses n - 1 times.
#pragma once

#include <functional>

#include "bootstrap/rendezvous.h"

namespace ccom {

// Belongs to one thread.
class GroupRendezvous final : public Rendezvous {
 public:
  struct Links {
    // Sends to one member and receives from another at the same time; sizes are equal at both ends, and nothing is sent
    // where there is nothing. Blocks until the deadline; an error is final.
    std::function<Status(int to, ConstBytes sent, int from, Bytes received, Deadline deadline)> swap;
    std::function<bool()> has_failed;
  };
  GroupRendezvous(int member, int members, Links links)
      : member_(member), members_(members), links_(std::move(links)) {}

  Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) override;
  bool has_failed() override { return links_.has_failed(); }

 private:
  Result<std::string> swap(int to, const std::string& sent, int from, Deadline deadline);

  const int member_, members_;
  const Links links_;
};

}  // namespace ccom
