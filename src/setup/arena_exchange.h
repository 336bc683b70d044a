// SPDX-License-Identifier: Apache-2.0
//
// The part of start-up that puts the processes of a host within reach of one another: who is which process, and whose
// arena goes to whom. Rides along with the exchanges of CommSetup::connect().
#pragma once

#include <map>
#include <vector>

#include "base/secret.h"
#include "base/wait_limit.h"
#include "memory/process_memory.h"
#include "memory/reach.h"

namespace ccom {

namespace wire {
class ArenaOffer;
class ProcessMemory;
}  // namespace wire

// Belongs to one thread. The phases in this order; each takes what all ranks of the host said in the phase before, by
// local rank.
class ArenaExchange {
 public:
  struct Said {
    uint64_t process = 0;  // its number
    const wire::ProcessMemory* memory = nullptr;
  };
  ArenaExchange(int local_rank, const Secret& key) : self_(static_cast<size_t>(local_rank)), key_(key) {}

  // 1. What this process has.
  static wire::ProcessMemory describe();
  // 2. Maps the arenas that it can open. Which others this rank will fetch, and where to fetch this process's, if this
  // rank serves it. Nobody waits for what cannot be opened, fetched or served for lack of a descriptor.
  wire::ArenaOffer prepare(const std::vector<Said>& ranks);
  // 3. Serves and fetches. Blocking. An arena that cannot be handed over or mapped is no error: has_all() tells.
  void trade(const std::vector<const wire::ArenaOffer*>& offers, const WaitLimit& limit);
  bool has_all() const { return has_all_; }
  // This rank may read the memory of every other process of the host.
  bool can_read_all() const { return can_read_all_; }

  // The arena of a local rank's process; null: it is not mapped here. Lives as long as what is returned.
  std::shared_ptr<SharedSegment> arena_of(size_t local_rank) const;
  // Of these local ranks, or of all if there are none; the segments they point into live as long as this object.
  std::vector<LocalPeer> peers(const std::vector<size_t>& local_ranks = {}) const;

 private:
  struct Process {
    uint64_t number = 0;
    size_t arena_bytes = 0;  // 0: none
    size_t server = 0;       // the local rank that serves its arena: its first
    uint64_t probe = 0;      // where in its memory its number stands
    ShownFile file;          // of the arena, for those who open it; without a descriptor it is handed over
  };
  bool serves() const {
    const Process& own = processes_[self_];
    return own.server == self_ && own.arena_bytes > 0 && own.file.descriptor < 0;
  }
  Status open(const Process& process);
  void serve(int clients, const WaitLimit& limit);
  Status fetch(const Process& process, const std::string& path, const WaitLimit& limit);

  const size_t self_;
  const Secret key_;
  std::vector<Process> processes_;                             // by local rank
  std::map<uint64_t, std::shared_ptr<SharedSegment>> arenas_;  // of other processes
  std::map<uint64_t, Descriptor> clients_;                     // to fetch those that are missing
  std::unique_ptr<SegmentServer> server_;
  bool has_all_ = false;
  bool can_read_all_ = false;
};

}  // namespace ccom
