// SPDX-License-Identifier: Apache-2.0
//
// Builds one rank's connections of the control trees: connects to parents, lets children in, each after a mutual
// handshake.
//
// Whoever connects without the key is dropped after two seconds or at its first wrong byte, costs one descriptor
// meanwhile and changes nothing. A connection that fails is tried again until the deadline, for the parent may be late.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "liveness/control_link.h"

namespace ccom {

// One connection of this rank.
struct JoinEdge {
  int tree = 0;
  int host = -1;          // the neighbour's
  Rank rank = -1;         // the neighbour's
  std::string address{};  // a parent's; empty for a child, who comes to us
};

struct JoinPlan {
  Secret key;
  uint64_t communicator = 0;
  int self_host = 0;
  std::vector<JoinEdge> edges;
};

struct JoinHooks {
  std::function<void(const JoinEdge&, std::unique_ptr<ControlLink>)> attach;  // called as soon as a connection is up
  std::function<Status()> check;  // called every few milliseconds; an error ends the work
};

// Blocking, in the calling thread. A Timeout names the ranks that are missing.
Status join_control_trees(const JoinPlan& plan, const OwnedFd& listener, const JoinHooks& hooks, Deadline deadline);

}  // namespace ccom
