// SPDX-License-Identifier: Apache-2.0
//
// Monitors the ranks of this host: death is detected at once (robust futex), a stopped process after dead_ns
// (heartbeats). The kernel is asked twice (thread_state.h), where it tells: a rank that sends no heartbeat because it
// gets no core is not silent, and who is killed at once with a dead rank, but has not got that far, is dead too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "liveness/board.h"
#include "liveness/thread_state.h"

namespace ccom {

// Of the liveness thread that holds the slot; Unknown for one of another PID namespace.
std::function<ThreadState(const BoardSlot&)> state_of_holders();

// Thread-safe; a concurrent call returns nullopt.
class NodeWatch {
 public:
  struct Config {
    std::string host;
    std::vector<Rank> ranks;  // by slot
    int own_slot = 0;
    uint64_t process = 0;  // its ranks are not watched
    int64_t dead_ns = 0;
    std::function<ThreadState(const BoardSlot&)> state_of = state_of_holders();
  };
  NodeWatch(Board board, Config config);

  // An error that names every rank found dead, or every rank found silent.
  std::optional<Status> find_failures(int64_t now_ns);

 private:
  struct Beats {
    uint64_t count = 0;
    int64_t since_ns = 0;   // of the last heartbeat
    int64_t alive_ns = 0;   // or when it was last found runnable
    int64_t looked_ns = 0;  // when the kernel was last asked
    bool suspected = false;
    bool spared = false;  // it was runnable after dead_ns
  };
  bool is_watched(int slot) const;
  void add_ending(std::vector<int>& dead) const;
  bool is_silent(int slot, int64_t now_ns, bool fresh) CCOM_REQUIRES(mutex_);
  bool is_starved(int slot, int64_t silence_ns) CCOM_REQUIRES(mutex_);
  Status death_error(const std::vector<int>& slots) const;
  Status silence_error(const std::vector<int>& slots) const;
  std::vector<Rank> ranks_of(const std::vector<int>& slots) const;
  std::string name_processes(const std::vector<int>& slots) const;

  const Board board_;
  const Config config_;
  Mutex mutex_;
  std::vector<Beats> beats_ CCOM_GUARDED_BY(mutex_);
  int64_t last_check_ns_ CCOM_GUARDED_BY(mutex_) = 0;
};

}  // namespace ccom
