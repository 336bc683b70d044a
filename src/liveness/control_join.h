// SPDX-License-Identifier: Apache-2.0
//
// Establishes one rank's connections of the control trees: connects to parents and accepts children, with mutual
// authentication.
//
// A peer without the key is dropped after two seconds or at its first wrong byte; until then it costs one descriptor
// and has no effect. Failed connections are retried until the deadline, because the parent may start later.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/wait_limit.h"
#include "liveness/control_link.h"

namespace ccom {

// One connection of this rank.
struct JoinEdge {
  int tree = 0;
  int host = -1;          // of the neighbour
  Rank rank = -1;         // of the neighbour
  std::string address{};  // of the parent; empty for a child, which connects to us
};

struct JoinPlan {
  Secret key;
  uint64_t communicator = 0;
  int self_host = 0;
  std::vector<JoinEdge> edges;
  bool tls = false;  // the same on both sides
};

struct JoinHooks {
  std::function<void(const JoinEdge&, std::unique_ptr<ControlLink>)> attach;  // called for each established connection
  std::function<Status()> check;  // called every few milliseconds; an error aborts
};

// Blocks the calling thread. A Timeout names the missing ranks.
Status join_control_trees(const JoinPlan& plan, const Descriptor& listener, const JoinHooks& hooks,
                          const WaitLimit& limit);

}  // namespace ccom
