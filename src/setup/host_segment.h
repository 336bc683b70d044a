// SPDX-License-Identifier: Apache-2.0
//
// The memory that the ranks of a host share, as one of them has it: made by the host's leader, mapped once per process.
// A rank alone on its host has a liveness board in private memory, and no segment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/wait_limit.h"
#include "memory/shared_segment.h"
#include "setup/host_segment_layout.h"

namespace ccom {

// Belongs to one thread. The phases in this order: create, share.
class HostSegment {
 public:
  // local_rank: this rank's index among the host's; 0 is the leader. The key admits those who fetch the segment.
  HostSegment(const HostSegmentLayout& layout, int ranks, int local_rank, const Secret& key);

  // The leader makes it; nothing elsewhere. Afterwards the leader has a board().
  Status create();
  // Where the others are to fetch it; empty for those who do not serve it.
  std::string path() const { return server_ == nullptr ? std::string() : server_->path(); }
  // The leader serves it, the others map what is at the leader's path. Blocking. processes: by local rank, equal
  // exactly for ranks of one process.
  Status share(const std::string& leader_path, const std::vector<uint64_t>& processes, const WaitLimit& limit);

  int local_rank() const { return local_rank_; }
  bool is_leader() const { return local_rank_ == 0; }
  const HostSegmentLayout& layout() const { return layout_; }
  Bytes board() const { return board_; }
  SharedSegment* shared() const { return segment_.get(); }  // null for a rank alone
  uint64_t memory_bytes() const { return is_leader() ? board_.size() : 0; }

 private:
  const HostSegmentLayout layout_;
  const int ranks_;
  const int local_rank_;
  const Secret key_;
  std::vector<std::byte> private_memory_;
  std::shared_ptr<SharedSegment> segment_;  // one mapping for all ranks of this process
  std::unique_ptr<SegmentServer> server_;
  Bytes board_;
};

}  // namespace ccom
