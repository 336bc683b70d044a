// SPDX-License-Identifier: Apache-2.0
//
// The memory that the ranks of a host share, as one of them has it: made by the host's leader, mapped once per process.
// A rank alone on its host has a liveness board and nothing else there; tools of the same user can see that, too.
//
// It is a segment of its own, handed over when a communicator starts, or, where all ranks have mapped the arenas of one
// another's processes already (memory/arena.h), a part of the arena of the leader's process: no descriptor, no
// hand-over, no mapping.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/wait_limit.h"
#include "memory/arena.h"
#include "memory/shared_segment.h"
#include "setup/host_segment_layout.h"

namespace ccom {

// Belongs to one thread. The phases in this order: create, then share or join.
class HostSegment {
 public:
  // local_rank: this rank's index among the host's; 0 is the leader. The key admits those who fetch the segment.
  HostSegment(const HostSegmentNeeds& needs, int local_rank, const Secret& key);
  ~HostSegment();
  HostSegment(const HostSegment&) = delete;
  HostSegment& operator=(const HostSegment&) = delete;

  // The leader makes it, in `arena` if that is not null; nothing elsewhere. Afterwards the leader has a board().
  Status create(Arena* arena);
  // Nobody will join: it is freed with this object.
  void abandon();
  // Where the others are to fetch it; empty for those who do not serve it.
  std::string path() const { return server_ == nullptr ? std::string() : server_->path(); }
  // Where it begins in the arena of the leader's process, if it is there.
  std::optional<size_t> place_in_arena() const { return place_; }
  // The leader serves it, the others map what is at the leader's path. Blocking. processes: by local rank, equal
  // exactly for ranks of one process.
  Status share(const std::string& leader_path, const std::vector<uint64_t>& processes, const WaitLimit& limit);
  // The same of one in an arena: that of the leader's process as mapped here, and the leader's place in it.
  Status join(std::shared_ptr<SharedSegment> arena, size_t place);

  int local_rank() const { return local_rank_; }
  bool is_leader() const { return local_rank_ == 0; }
  // Of a leader after create(), of others after share() or join().
  const HostSegmentLayout& layout() const { return layout_; }
  Bytes board() const { return board_; }
  // Where others of the user find the board: in which descriptor of this process, and at which offset. Nothing for one
  // in private memory.
  struct BoardPlace {
    int fd = -1;
    size_t offset_bytes = 0;
  };
  std::optional<BoardPlace> board_place() const;
  SharedSegment* shared() const { return is_alone() ? nullptr : segment_.get(); }  // null for a rank alone
  uint64_t memory_bytes() const { return is_leader() ? board_.size() : 0; }

 private:
  bool is_alone() const { return needs_.ranks == 1; }
  HostSegmentLayout board_alone() const;
  Status use_private_memory();
  Status create_in(Arena& arena, const HostSegmentLayout& layout);
  void use(std::shared_ptr<SharedSegment> segment, size_t offset);

  const HostSegmentNeeds needs_;
  const int local_rank_;
  const Secret key_;
  HostSegmentLayout layout_;
  std::vector<std::byte> private_memory_;
  std::shared_ptr<SharedSegment> segment_;  // one mapping for all ranks of this process
  std::optional<size_t> place_;
  std::unique_ptr<SegmentServer> server_;
  Bytes board_;
};

}  // namespace ccom
