// SPDX-License-Identifier: Apache-2.0
//
// Where the buffers of all ranks are in the present call, as this rank reaches them: announced at the first barrier.
#pragma once

#include <span>
#include <vector>

#include "memory/reach.h"
#include "node/call_choices.h"
#include "node/flag_barrier.h"
#include "node/geometry.h"
#include "node/node_call.h"

namespace ccom {

// What a rank says at the first barrier of a call. Travels in a flag line.
struct Opening {
  Announcement announcement;
  CallChoices::Said said;
  // Whether the same buffers are where they were.
  bool is_like(const Opening& other) const {
    const auto differs = [](const Announcement::Where& a, const Announcement::Where& b) {
      return (a.at ^ b.at) | (a.kind ^ b.kind);
    };
    return (differs(announcement.input, other.announcement.input) |
            differs(announcement.output, other.announcement.output) | (said.buffers ^ other.said.buffers)) == 0;
  }
};
static_assert(sizeof(Opening) <= kLinePayloadBytes);

// Lives on from call to call: what has been said before is not looked at again.
class PeerBuffers {
 public:
  // Of calls of the same lengths and views.
  explicit PeerBuffers(const NodeCall& call);

  // What this rank says: where its buffers are, as far as others may use them in this call; and, as bits, which of them
  // they have mapped at all.
  struct Own {
    Announcement announcement;
    uint32_t mapped = 0;
  };
  Own announce(const NodeCall& call, const ReachMap& map, Rank local_rank);
  // Without announcements: nobody reaches anybody.
  void clear();
  void take_own(const NodeCall& call, Rank local_rank) {
    const auto self = static_cast<size_t>(local_rank);
    inputs_[self].begin = const_cast<std::byte*>(call.input);  // never written through
    outputs_[self].begin = call.output;
  }
  // After the barrier: what all have said. Whether that is something else than the last time.
  Result<bool> collect(const Opening& mine, const ReachMap& map, const FlagBarrier& barrier);

  // Of a rank's Input or Output.
  const NodeGeometry::Extent& extent(const Operand& operand) const { return buffer(operand).extent; }
  std::span<const Reach> reach() const { return reach_; }
  bool is_anybody_reached() const { return is_anybody_reached_; }
  // Begin of a rank's Input or Output; for is_remote() there.
  std::byte* begin(const Operand& operand) const { return buffer(operand).begin; }
  // To be read through the kernel.
  bool is_remote(const Operand& operand) const { return is_buffer(operand.area) && buffer(operand).is_remote; }
  bool is_any_output_remote() const { return is_any_output_remote_; }

 private:
  struct Buffer {
    std::byte* begin = nullptr;
    bool is_remote = false;
    NodeGeometry::Extent extent{};
  };
  Status find(Rank rank, const Announcement& said, const ReachMap& map, const FlagBarrier& barrier);
  const Buffer& buffer(const Operand& operand) const {
    return (operand.area == Area::Output ? outputs_ : inputs_)[static_cast<size_t>(operand.owner)];
  }

  std::vector<Opening> said_;
  std::vector<Reach> reach_;
  std::vector<Buffer> inputs_, outputs_;  // by local rank
  bool is_anybody_reached_ = false, is_any_output_remote_ = false;
};

}  // namespace ccom
