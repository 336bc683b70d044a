// SPDX-License-Identifier: Apache-2.0
//
// Establishes those control connections of a rank that it does not have yet: connects to ranks of the parent host and
// accepts those of child hosts, with mutual authentication.
//
// A peer without the key is dropped after two seconds or at its first wrong byte; until then it costs one descriptor
// and has no effect. Failed connections are retried until the deadline, because the parent may start later.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/wait_limit.h"
#include "liveness/control_handshake.h"

namespace ccom {

// One connection of this rank.
struct JoinPeer {
  Rank rank = -1;         // of the communicator
  Rank member = -1;       // the same rank in the family
  std::string address{};  // of one who accepts; empty for one who connects to us
};

struct JoinHooks {
  std::function<void(const JoinPeer&, std::shared_ptr<ControlConnection>)> attach;  // each that is established
  std::function<Status()> check;  // called every few milliseconds; an error aborts
};

// Blocks the calling thread. A Timeout names the missing ranks. identity: of the family. use: the communicator that the
// connections are made for.
Status join_control_trees(const ControlIdentity& identity, uint64_t use, const std::vector<JoinPeer>& peers,
                          const Descriptor& listener, const JoinHooks& hooks, const WaitLimit& limit);

}  // namespace ccom
