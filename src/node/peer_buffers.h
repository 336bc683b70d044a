// SPDX-License-Identifier: Apache-2.0
//
// Where the buffers of all ranks are in the present call, as this rank reaches them: announced at the first barrier.
#pragma once

#include <span>
#include <vector>

#include "memory/reach.h"
#include "node/flag_barrier.h"
#include "node/node_call.h"

namespace ccom {

// Lives on from call to call for its memory.
class PeerBuffers {
 public:
  explicit PeerBuffers(int ranks);

  // What this rank says: where its buffers are, as far as others may use them in this call; and, as bits, which of them
  // they have mapped at all.
  struct Own {
    Announcement announcement;
    uint32_t mapped = 0;
  };
  static Own announce(const NodeCall& call, const ReachMap& map, Rank local_rank);
  // Without announcements: nobody reaches anybody.
  void clear(const NodeCall& call, Rank local_rank);
  // After the barrier: what all have said.
  Status collect(const NodeCall& call, const Announcement& mine, const ReachMap& map, const FlagBarrier& barrier);

  std::span<const Reach> reach() const { return reach_; }
  bool is_anybody_reached() const;
  // Begin of a rank's Input or Output; for is_remote() there.
  std::byte* begin(const Operand& operand) const {
    return (operand.area == Area::Output ? outputs_ : inputs_)[static_cast<size_t>(operand.owner)].begin;
  }
  // To be read through the kernel.
  bool is_remote(const Operand& operand) const {
    if (operand.area != Area::Input && operand.area != Area::Output) return false;
    return (operand.area == Area::Output ? outputs_ : inputs_)[static_cast<size_t>(operand.owner)].is_remote;
  }
  bool is_any_output_remote() const;

 private:
  struct Buffer {
    std::byte* begin = nullptr;
    bool is_remote = false;
  };

  std::vector<Reach> reach_;
  std::vector<Buffer> inputs_, outputs_;  // by local rank
};

}  // namespace ccom
