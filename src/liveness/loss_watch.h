// SPDX-License-Identifier: Apache-2.0
//
// Finds lost ranks of this host, and collects what its processes know of lost ranks of any host. With one host, who
// finds a loss makes it the communicator's error; with several, the control trees do (state.h), and each of a host's
// two hears over the board what the other one has heard.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "liveness/node_watch.h"

namespace ccom {

struct MonitorConfig;

class LossWatch {
 public:
  // The configuration must outlive the watch. process: whose ranks are not watched; wake: called by check() when the
  // trees have something to hear.
  LossWatch(Board board, const MonitorConfig& config, uint64_t process, std::function<void()> wake);

  // Of ranks of this host: the error that the caller is to publish now, if any. Thread-safe.
  std::optional<Status> check(int64_t now_ns);
  // The rest is called by one thread only. A tree has heard of it.
  void hear(const Status& loss);
  // For the trees: what was found on this host, heard by one of them, or put on the board since the last time.
  std::vector<Status> take_new(int64_t now_ns);
  // How many of the board's list it has taken.
  size_t taken() const { return taken_; }

 private:
  bool note(const Status& loss) const;
  bool is_overdue(int64_t now_ns);
  Status loss_of(Rank rank) const;

  const Board board_;
  const MonitorConfig& config_;
  const std::function<void()> wake_;
  NodeWatch node_;
  std::vector<int> members_;  // slots of this host's members of the trees
  std::atomic<int64_t> first_ns_ = 0;
  size_t taken_ = 0;  // of the board's list, from the front
  std::vector<Status> heard_;
  std::vector<Rank> found_;  // what was taken last of this host
};

}  // namespace ccom
