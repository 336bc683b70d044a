// SPDX-License-Identifier: Apache-2.0
//
// Looks after the ranks of the own host: dead ones (their life line) at once, stopped ones (their beats) after dead_ns.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "liveness/board.h"

namespace ccom {

// Any thread may look; a second one at the same time finds nothing.
class NodeWatch {
 public:
  struct Config {
    std::string host;
    std::vector<Rank> ranks;  // by slot
    int own_slot = 0;
    uint64_t process = 0;  // whose ranks need no watching
    int64_t dead_ns = 0;
  };
  NodeWatch(Board board, Config config);

  // An error that names everybody found dead, or everybody found silent.
  std::optional<Status> look(int64_t now_ns);

 private:
  struct Beats {
    uint64_t count = 0;
    int64_t since_ns = 0;
    bool suspected = false;
  };
  bool is_watched(int slot) const;
  bool is_silent(int slot, int64_t now_ns, bool fresh);
  Status died(const std::vector<int>& slots) const;
  Status fell_silent(const std::vector<int>& slots) const;
  std::vector<Rank> ranks_of(const std::vector<int>& slots) const;
  std::string name_processes(const std::vector<int>& slots) const;

  const Board board_;
  const Config config_;
  std::mutex mutex_;  // guards the rest
  std::vector<Beats> beats_;
  int64_t last_look_ns_ = 0;
};

}  // namespace ccom
