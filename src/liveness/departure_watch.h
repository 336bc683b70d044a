// SPDX-License-Identifier: Apache-2.0
//
// Finds that this rank waits for one that has left the communicator in order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "liveness/board.h"

namespace ccom {

struct HostMembers;

// Thread-safe.
class DepartureWatch {
 public:
  // hosts: all, outlive the watch; own_host: the index of the board's host.
  DepartureWatch(Board board, const std::vector<HostMembers>& hosts, int own_host, Rank self)
      : board_(board), hosts_(hosts), own_host_(own_host), self_(self) {}

  // An error if a rank of any host has left and `call`, which this one has begun, is later than the last of that rank.
  std::optional<Status> find_missing(const CallDescriptor& call) const;
  // An error if one of `peers`, for whose messages this rank waits, is known to have left.
  std::optional<Status> find_departed(const std::vector<Rank>& peers) const;
  // A Mismatch if a rank that is known to have left has made other calls than `other`, which leaves or has left.
  std::optional<Status> find_different(const Departure& other) const;

 private:
  const std::vector<Rank>& mates() const;  // of the own host, by slot
  Status departure_error(const Departure& departure, const std::string& meanwhile) const;
  Status difference_error(const Departure& a, const Departure& b) const;
  std::string last_call_of(const Departure& departure) const;

  const Board board_;
  const std::vector<HostMembers>& hosts_;
  const int own_host_;
  const Rank self_;
};

}  // namespace ccom
