// SPDX-License-Identifier: Apache-2.0
//
// The part of start-up that puts the processes of a host within reach of one another: who is which process, and whose
// arena goes to whom. Rides along with the phases of CommSetup::connect().
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/secret.h"
#include "memory/process_memory.h"
#include "node/reach.h"

namespace ccom {

// Belongs to one thread. The phases in this order; each takes what all ranks of the host said in the phase before, by
// place (index in the host's list of ranks).
class NodeJoin {
 public:
  NodeJoin(int place, Secret key) : place_(static_cast<size_t>(place)), key_(std::move(key)) {}

  // 1. Which process this is, and how large its arena.
  nlohmann::json introduce() const;
  // 2. Which arenas this rank lacks, and where to fetch this process's, if this rank speaks for it.
  Result<nlohmann::json> prepare(const std::vector<nlohmann::json>& introductions);
  // 3. Serves and fetches. Blocking. An arena that cannot be mapped is no error: has_all() tells.
  Status trade(const std::vector<nlohmann::json>& prepared, Deadline deadline);
  bool has_all() const { return has_all_; }
  // This rank may read the memory of every other process of the node.
  bool can_read_all() const { return can_read_all_; }
  bool has_fence() const;  // the kernel can do an asymmetric fence

  // By place; the segments they point into live as long as this object.
  std::vector<NodeMate> mates() const;

 private:
  struct Process {
    uint64_t number = 0;
    size_t arena_bytes = 0;  // 0: none
    size_t speaker = 0;      // the place of its first rank
    int pid = 0;
    uint64_t probe = 0;  // where in its memory its number stands
  };
  bool speaks() const { return processes_[place_].speaker == place_; }

  const size_t place_;
  const Secret key_;
  std::vector<Process> processes_;                             // by place
  std::map<uint64_t, std::shared_ptr<SharedSegment>> arenas_;  // of other processes
  std::unique_ptr<SegmentServer> server_;
  bool has_all_ = false;
  bool can_read_all_ = false;
};

}  // namespace ccom
