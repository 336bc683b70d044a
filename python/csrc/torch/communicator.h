// SPDX-License-Identifier: Apache-2.0
//
// A ccom communicator created through torch's store, with a queue for asynchronous operations.
#pragma once

#include <ccom/ccom.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "queue.h"
#include "rethrow.h"

namespace ccom_torch {

// Thread-safe.
class Communicator {
 public:
  using Milliseconds = std::chrono::milliseconds;

  struct Whole;
  // Of this process, one that has all ranks of a new one and that number, or any number if 0 is asked for; null: none.
  using FindWhole = std::function<std::unique_ptr<Whole>(uint64_t number)>;

  // Collective; blocks for at most `timeout`. Rank 0 writes to the store which communicator this one becomes a part of
  // (its ranks then meet over the links of that one, in the order of its operations) or, if there is none, an id.
  Communicator(c10d::Store& store, int rank, int size, Milliseconds timeout, const std::string& name,
               const FindWhole& find_whole);
  struct Survivors;
  // Collective over the ranks that are left of another one, whatever state that is in; blocks for at most its timeout
  // and `timeout`. Throws, and names them, if others have died than those that are excluded: then there is no new one.
  Communicator(const Survivors& survivors, Milliseconds timeout, const std::string& name);
  struct Growth;
  // Collective over the ranks of a smaller one and new ranks; blocks for at most `timeout`. Throws if not all have come
  // by then: the smaller one stays as it was.
  Communicator(const Growth& growth, Milliseconds timeout, const std::string& name);
  struct Meeting;
  // Collective over the ranks that meet, whatever they have been before; blocks for at most `timeout`.
  Communicator(const Meeting& meeting, Milliseconds timeout, const std::string& name);
  // None yet: whoever uses it is told why.
  explicit Communicator(std::string why_not) : why_closed_(std::move(why_not)), closing_(true) {}
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Keeps the communicator from being closed. Throws if it is closed.
  class Use {
   public:
    explicit Use(Communicator& communicator);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ccomComm_t comm() const { return communicator_.comm_; }

   private:
    Communicator& communicator_;
  };

  // Timeout of this thread's next calls.
  void set_timeout(Milliseconds timeout);

  // Runs `job`, which must not throw, as the queue does, after everything queued before.
  void post(std::function<void()> job);
  // Shared with operations that are waited for.
  const std::shared_ptr<Queue>& queue() const { return queue_; }
  // Whether the queue is empty: a call made now runs after all posted calls.
  bool is_idle() const { return queue_->is_idle(); }
  // Waits until the queue is empty. False on timeout.
  bool drain(Milliseconds timeout);

  // Fails all operations, on this rank and on its peers. Returns immediately.
  void abort();
  // Waits at most `timeout` for queued operations, aborts the rest, and releases everything; `last` is called while the
  // communicator still exists but is no longer used. Idempotent.
  void close(Milliseconds timeout, const std::function<void(ccomComm_t)>& last);
  // Whether it can be used no more, or not yet.
  bool is_closed() const { return closing_.load(std::memory_order_acquire); }
  ccomResult_t error();
  // Collective over the ranks that are left: the others, ascending, of `size`. The same on all, even after an error.
  std::vector<int> lost_ranks(int size);
  // These must be equal on all ranks, as the next operation finds out (ccomCommWitness).
  void witness(const std::vector<std::pair<const void*, size_t>>& data);
  // Payload of this rank's messages so far, with those of operations issued before.
  uint64_t bytes_sent();
  // ccomCommReport; site: who asks.
  std::string report(int size, int flags, const std::string& site);
  // Equal on all of its ranks, and different from all others'.
  uint64_t number() const { return number_; }
  // Shared with operations, which may outlive the communicator.
  const std::shared_ptr<Interrupt>& interrupt() const { return interrupt_; }

 private:
  ccomConfig_t settings(const std::string& name) const;
  void start_part(Whole& whole, const ccomConfig_t& config);
  void start_by_id(const ccomUniqueId& id, int rank, int size, ccomConfig_t config);
  void require_all(const Survivors& survivors);
  void run_in_order(const std::function<void()>& job);

  const std::shared_ptr<Interrupt> interrupt_ = std::make_shared<Interrupt>();
  ccomComm_t comm_ = nullptr;
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  const std::string why_closed_ = "the process group has been shut down";
  uint64_t number_ = 0;
  std::atomic<int64_t> timeout_ms_{0};
  std::atomic<uint64_t> shrunk_{0};  // how often
  std::atomic<int> in_use_{0};
  std::atomic<bool> closing_{false};
  std::mutex close_mutex_;
};

// A communicator that another one becomes a part of. It is not closed meanwhile.
struct Communicator::Whole {
  Whole(Communicator& known, std::vector<int> members) : communicator(known), use(known), ranks(std::move(members)) {}
  Communicator& communicator;
  const Use use;
  const std::vector<int> ranks;  // of the part, in the whole
};

// The ranks of another communicator that a smaller one is made of.
struct Communicator::Survivors {
  Communicator& parent;
  std::string parent_name;    // for error texts
  int rank, size;             // in the parent
  std::vector<int> excluded;  // ranks of the parent, ascending: all that do not live or do not call
  bool aborts;                // first ends the operations of the parent, on all of its ranks
  int size_left() const { return size - static_cast<int>(excluded.size()); }
  int rank_left() const { return rank - static_cast<int>(std::ranges::lower_bound(excluded, rank) - excluded.begin()); }
};

// A communicator that new ranks come to.
struct Communicator::Growth {
  Communicator* parent;  // null: this is a new rank
  c10d::Store& store;    // rank 0 writes there how the others find it
  std::string key;       // not used before
  int rank, size;        // in the larger one, where ranks of the parent keep theirs
};

// Ranks that make a communicator of their own, by a key that all know.
struct Communicator::Meeting {
  c10d::Store& store;
  std::string key;  // not used before
  int rank, size;
};

// What rank 0 tells the others: an id, or the communicator that this one becomes a part of.
struct Told {
  uint64_t whole = 0;   // its number; 0: an id
  uint64_t number = 0;  // of the new communicator
  ccomUniqueId id{};
};

// Waits for it. Throws when it is not there in time.
Told read(c10d::Store& store, const std::string& key, int rank, std::chrono::milliseconds timeout,
          const std::string& name, Interrupt& interrupt);
void write(c10d::Store& store, const std::string& key, const Told& told);
// Whoever holds the id can join, and whoever can connect to the store can read it: it is to be gone once nobody needs
// it. A store that cannot delete keeps an empty value.
void forget(c10d::Store& store, const std::string& key);
// Never 0.
uint64_t new_number();

// As the store's own wait, which does not look at signals: throws when the key is not there in time, when the store is
// lost, or what a signal's handler has raised.
void wait_for_key(c10d::Store& store, const std::string& key, std::chrono::milliseconds timeout, Interrupt& interrupt);

// The interface with the route to the job's master (MASTER_ADDR); "" if unknown.
std::string interface_towards_master();

}  // namespace ccom_torch
