// SPDX-License-Identifier: Apache-2.0
//
// Failure detection, and the communicator's sticky error. One Monitor per rank and communicator.
//
// The ranks of a host share a Board in shared memory: the communicator's first error, and a robust futex per rank, held
// by the liveness thread of its process. The kernel marks it within milliseconds of the holder's death, whatever the
// memory size; waiting ranks of the host notice in check(). Between hosts, one rank per host keeps TCP control
// connections in a tree of degree 8 that carries heartbeats, errors, departures and goodbyes; a lost or silent
// connection (CCOM_DEAD_MS) is reported as a death and flooded over the tree. The first error wins on every board.
//
// Threads: check(), failed(), status() and report() may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/types.h"
#include "base/wait_limit.h"
#include "liveness/consensus.h"
#include "liveness/held_connection.h"
#include "observe/activity_writer.h"
#include "observe/message_activity.h"
#include "observe/rank_activity.h"
#include "observe/rank_waits.h"

namespace ccom {

struct HostMembers {
  std::string name;         // for error texts
  std::vector<Rank> ranks;  // ascending; the first is the host's leader
};

// What a round of agreement has found. Ranks ascending.
struct Consensus {
  std::vector<Rank> in, out;
  uint64_t flags = 0;
  std::array<uint64_t, ConsensusTerms::kWords> payload{};  // of the first rank that is in
};

class ControlFamily;

struct MonitorConfig {
  Rank rank = -1;
  std::vector<HostMembers> hosts;  // all hosts, the same list on all ranks
  int host_index = -1;             // index of this rank's host in `hosts`
  Secret key;                      // authenticates control connections
  uint64_t communicator = 0;
  int64_t dead_ms = 3000;
  int64_t warn_ms = 30000;    // see warn_after()
  std::string bind_address;   // of control connections, where there are several hosts
  PortRange ports{};          // likewise
  Interrupted interrupted{};  // aborts, see check()
  bool tls = false;           // control connections are encrypted; the same on all ranks
  // Of a part: what it shares with the communicator that it is a part of, and the ranks' ranks in the family. Of a
  // start: nothing.
  std::shared_ptr<ControlFamily> family{};
  std::vector<Rank> members{};
};

class Monitor {
 public:
  // Size of the shared region for a host with that many ranks of the communicator; 64-byte aligned, zeroed when new.
  static size_t board_bytes(int local_ranks);

  // `board` is this rank's mapping of the region (private memory if the rank is alone on its host) and must outlive the
  // Monitor. Claims this rank's slot; the leader (initialise = true) must have returned from create() before any other
  // rank of the host calls it.
  static Result<std::unique_ptr<Monitor>> create(MonitorConfig config, Bytes board, bool initialise);

  virtual ~Monitor() = default;  // local: sends a goodbye, waits for nobody

  // What is shared with parts; null on a single host.
  virtual std::shared_ptr<ControlFamily> family() const = 0;
  // Takes what is needed of the connections that exist, and listens where others have to connect. held: by rank, what
  // each holds of the family (ControlFamily::held); of a start: empty. Called once, before addresses().
  virtual Status prepare(const std::vector<std::vector<HeldConnection>>& held) = 0;
  // Where this rank can be reached, for exchange by rendezvous.
  struct Addresses {
    std::string control;    // by children in the trees; empty for ranks that accept none
    std::string agreement;  // by all, once they have to agree on who is left; empty on a single host
  };
  virtual Addresses addresses() const = 0;
  // Builds the trees from the addresses of all ranks, by rank. Blocks; nothing listens afterwards.
  virtual Status connect(const std::vector<Addresses>& addresses, const WaitLimit& limit) = 0;

  // Whether the communicator has an error. One relaxed load, for every wait loop.
  bool failed() const { return abort_word_->load(std::memory_order_relaxed) != 0; }
  // The sticky error, or Ok.
  virtual Status status() const = 0;
  // Makes `error` the communicator's error unless there is one; notifies the ranks of this host and of other hosts, and
  // calls the listener of every local rank (on the liveness thread, within milliseconds). An error that names no rank
  // is this one's. Returns the error in force, when this rank's control connections have it.
  virtual Status report(const Status& error) = 0;
  // Detects dead local ranks, and ranks that have left although this one makes further calls, and reports them. Returns
  // what report() does or Ok.
  virtual Status look() = 0;
  // The same for the slow path of waits (every few milliseconds), where the caller may wish to wait no longer.
  virtual Status check() = 0;
  // What this rank does, for others to read. Belongs to whoever has the rank's turn: a few stores with every call.
  ActivityWriter& activity() { return *activity_; }
  // What its messages do; null: nobody is to know.
  MessageActivity* message_activity() { return message_activity_ ? &*message_activity_ : nullptr; }
  // It has begun that collective call; numbers follow each other. bytes: of its unit.
  void begin_call(const CallDescriptor& call, CallSite site = 0, uint64_t bytes = 0) {
    activity_->begin(call, site, bytes);
  }
  // What it is in waits for `peer` since then, and no more.
  void begin_wait(Rank peer, Clock::time_point since) {
    if (activity_) activity_->begin_wait(peer, since);
  }
  void end_wait() {
    if (activity_) activity_->end_wait();
  }
  // The last collective call that it has begun.
  CallDescriptor last_call() const { return activity_->last_call(); }
  // What all ranks do of which that is known, ascending: those of this host, and those of others of which it has heard
  // in the last 1.5 s, because somebody has asked or a rank waits for long.
  virtual std::vector<RankActivity> known_activities() const = 0;
  // The same, after all hosts were asked what their ranks do, and ranks that are in no call where they are: at most
  // 500 ms later.
  virtual std::vector<RankActivity> ask_activities() = 0;
  // For whom the ranks of this host have waited since the start, `seconds` ago, ascending; also of those that have left
  // or died.
  virtual std::vector<RankWaits> known_waits(double seconds) const = 0;
  // This rank makes no more calls. Ranks that have begun, or begin, a later call than its last get an error that names
  // it: on this host from check(), on others when the control trees have told them. Of messages it may still have some.
  // history: of its calls (extend()), which is compared with that of ranks that have left: a difference is a Mismatch,
  // which becomes the communicator's error for those that are still there, and is returned. On this host one of two
  // ranks finds it, whenever they leave; ranks of other hosts that leave within the time of a message may not.
  virtual Status depart(uint64_t history) = 0;
  // A RemoteError if one of `peers`, for which this rank waits, is known to have left in order.
  virtual std::optional<Status> find_departed(const std::vector<Rank>& peers) const = 0;
  // How long a rank waits before it logs whom it waits for; 0: it never does.
  virtual std::chrono::milliseconds warn_after() const = 0;
  // Whether a rank of this host has died or left, so that it can touch nothing any more. False if it is only silent.
  virtual bool has_ended(int local_rank) const = 0;
  // The same of any rank. Of other hosts it is known while ranks agree on who is left, and afterwards.
  virtual bool has_rank_ended(Rank rank) const = 0;
  // After a long wait: the ranks that have begun fewer calls than this one; empty if none is known. Compares calls as
  // compare_calls() does. Takes 150 ms with several hosts.
  virtual std::vector<Rank> find_stragglers() = 0;
  // This rank waits, and has waited for long, in a collective call: its last calls are compared with those of all
  // ranks, from now on until end_comparison(), and a difference becomes the communicator's error (Mismatch, with both
  // calls). To be repeated for the ranks of this host; those of others are asked over the control tree.
  virtual void compare_calls() = 0;
  virtual void end_comparison() = 0;
  // One round of agreement among the ranks that live (consensus.h; between hosts agreement.h), also after an error.
  // Collective over all ranks but those that have died or left, or are silent, and those in `excluded`, which get
  // nothing if they come. Blocks until all have come; from `limit` on those that have not are Late, on all ranks.
  // Between hosts, ranks that are silent must be a minority. For one thread at a time.
  virtual Result<Consensus> agree(const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                                  const WaitLimit& limit) = 0;
  // `listener` is called on the liveness thread soon after this rank's board has an error; it must not block.
  virtual void on_failure(std::function<void()> listener) = 0;

  uint64_t communicator() const { return communicator_; }

 protected:
  uint64_t communicator_ = 0;
  const std::atomic<uint32_t>* abort_word_ = nullptr;
  std::optional<ActivityWriter> activity_;           // empty: of a Monitor that watches nobody
  std::optional<MessageActivity> message_activity_;  // likewise
};

}  // namespace ccom
