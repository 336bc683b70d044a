// SPDX-License-Identifier: Apache-2.0
//
// Who is alive, and the communicator's sticky error. One Monitor per rank and communicator.
//
// Inside a host the ranks share a Board (in shared memory): the first error of the communicator, and a robust lock per
// rank, held for the rank's life by the process's liveness thread. The kernel breaks it within milliseconds of the
// holder's death, whatever its memory size; a waiting node-mate notices in check(). Between hosts the lowest ranks of
// the hosts keep TCP control connections in a tree (degree 8) that carries heartbeats, errors and goodbyes; a lost
// connection or a silent one (CCOM_DEAD_MS) is a death notice, flooded over the tree. First error wins on every board.
//
// Threads: check(), failed(), status() and report() may be called from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/time.h"
#include "base/types.h"

namespace ccom {

struct HostMembers {
  std::string name;         // for texts
  std::vector<Rank> ranks;  // ascending; the first one is the host's leader
};

struct MonitorConfig {
  Rank rank = -1;
  std::vector<HostMembers> hosts;  // all hosts, the same list on all ranks
  int host_index = -1;             // of this rank in `hosts`
  Secret key;                      // admits control connections
  uint64_t communicator = 0;
  int64_t dead_ms = 3000;
  std::string bind_address;  // control connections; used by leaders when there are several hosts
  PortRange ports{};         // likewise
};

class Monitor {
 public:
  // Bytes of the shared region for a host with that many ranks of the communicator; 64-byte aligned, zeroed when new.
  static size_t board_bytes(int local_ranks);

  // `board` is this rank's mapping of the region (private memory will do for a rank alone on its host) and outlives the
  // Monitor. Takes the own slot; the leader (initialise = true) must have returned from create()
  // before any other rank of the host calls it.
  static Result<std::unique_ptr<Monitor>> create(MonitorConfig config, Bytes board, bool initialise);

  virtual ~Monitor() = default;  // local; says goodbye to the tree, waits for nobody

  // Where the tree's parent side listens: to be exchanged by rendezvous. Empty for ranks that take no part.
  virtual std::string control_address() const = 0;
  // Builds the tree from the control addresses of all ranks, by rank. Blocking; no listener is left behind.
  virtual Status connect(const std::vector<std::string>& addresses, Deadline deadline) = 0;

  // One relaxed load: whether the communicator has an error. For every wait loop.
  bool failed() const { return abort_word_->load(std::memory_order_relaxed) != 0; }
  // The sticky error, or Ok.
  virtual Status status() const = 0;
  // Makes `error` the communicator's error unless there is one already, tells node-mates and other hosts, calls the
  // listener of every local rank (through their liveness threads within milliseconds). Returns the error in force.
  virtual Status report(const Status& error) = 0;
  // The slow path of waits (every few milliseconds): looks for dead node-mates and reports them. Returns status().
  virtual Status check() = 0;
  // This rank has begun so many of the calls that all ranks make alike. A relaxed store.
  virtual void begin_call(uint64_t calls) = 0;
  // For a rank whose time is up: the ranks that have begun fewer calls than this one; none if nobody is known to.
  // Between hosts it takes 150 ms.
  virtual std::vector<Rank> who_is_behind() = 0;
  // Called from the liveness thread, soon after this rank's board has got its error; must not block.
  virtual void on_failure(std::function<void()> listener) = 0;

 protected:
  const std::atomic<uint32_t>* abort_word_ = nullptr;
};

}  // namespace ccom
