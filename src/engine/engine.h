// SPDX-License-Identifier: Apache-2.0
//
// The real world behind the executor: starts steps on transports and kernels, waits, and knows when to give up.
//
// Runs in the thread that calls run(). Every wait looks at the communicator's abort word, at dead ranks of the host and
// at the deadline. After run() has returned an error, all transports are stopped: nobody writes to the caller's buffers
// any more, and the engine only repeats the error.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/backoff.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/bound_plan.h"
#include "liveness/long_wait.h"
#include "liveness/monitor.h"
#include "plan/executor.h"

namespace ccom {

// One operation to run. The plan outlives the run.
struct Operation {
  const BoundPlan* plan = nullptr;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::byte* bank = nullptr;  // Memory::Bank
  Envelope envelope;
  uint32_t contributions = 1;                 // what an average divides by
  UserOperator* user = nullptr;               // of plans bound to a user's operator
  Rounding rounding = Rounding::NearestEven;  // other than to nearest: only plans that round a sum once
  uint64_t seed = 0;                          // of stochastic rounding
  uint64_t first_element = 0;                 // of each unit: so many are in tiles before this one
  // Of sums of scaled blocks, of one unit: a float32 for each of its numbers, to which what the blocks of the sum lose
  // is added. Empty: nobody wants to know.
  std::span<std::byte> loss{};
};

// Says what an envelope means, for the text of a mismatch; the communicator implements it.
class CallNames {
 public:
  virtual ~CallNames() = default;
  virtual std::string describe_call(const Envelope& envelope) const = 0;
};

// Belongs to one thread at a time.
class Engine {
 public:
  // All references outlive the engine. Transports are indexed as in ChannelRef.
  Engine(Rank rank, int nranks, Monitor& monitor, std::vector<Transport*> transports, const CallNames& names,
         WaitPolicy policy);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs the operations to their end, all at the same time. They must not share output memory. Channels carry their
  // messages in the order of the list.
  Status run(std::span<const Operation> operations, Deadline deadline);
  // The same for one operation in two parts. Between them this rank may do something else; whatever is under way moves
  // while any is waited for. Up to kMostStarted of them, in slots of the caller's choice, on channels that no other
  // operation under way uses.
  static constexpr size_t kMostStarted = 4;
  Status start(size_t slot, const Operation& operation);
  Status finish(size_t slot, Deadline deadline);
  // Makes `cause` the communicator's error: for failures on this rank that peers cannot see. Returns the error in
  // force.
  Status fail(const Status& cause) noexcept { return give_up(cause); }

  // Payload handed to transports so far, by peer.
  const std::vector<uint64_t>& bytes_sent_to() const { return bytes_sent_to_; }
  size_t memory_bytes() const;

 private:
  class Run;  // one operation under way

  Status begin(size_t slot, const Operation& operation);
  Status finish_run(size_t slot, Deadline deadline, Backoff& backoff);
  Status wait_for_events(Backoff& backoff, LongWait& long_wait, Deadline deadline);
  Status collect_events();
  Status give_up(const Status& cause) noexcept;
  struct Awaited {
    std::vector<Rank> ranks;
    bool is_collective = true;  // all ranks take part in what is waited for
  };
  Rank first_awaited() const;
  Awaited awaited_ranks() const;
  Status late();

  Rank rank_;
  Monitor& monitor_;
  std::vector<Transport*> transports_;
  const CallNames& names_;
  WaitPolicy policy_;
  Events events_;
  std::vector<uint32_t> outstanding_;  // posted and not complete, by transport
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<uint64_t> bytes_sent_to_;
  bool stopped_ = false;
};

}  // namespace ccom
