// SPDX-License-Identifier: Apache-2.0
#include "setup/host_segment.h"

#include <algorithm>
#include <set>

#include "base/assert.h"
#include "memory/process_segments.h"

namespace ccom {
namespace {

constexpr size_t kBoardAlignment = 128;

}  // namespace

HostSegment::HostSegment(const HostSegmentLayout& layout, int ranks, int local_rank, const Secret& key)
    : layout_(layout), ranks_(ranks), local_rank_(local_rank), key_(key) {
  CCOM_ASSERT(local_rank >= 0 && local_rank < ranks);
}

Status HostSegment::create() {
  if (!is_leader()) return {};
  if (ranks_ == 1) {
    size_t space = layout_.board.size_bytes + kBoardAlignment;
    private_memory_.resize(space);
    void* start = private_memory_.data();
    std::align(kBoardAlignment, layout_.board.size_bytes, start, space);
    board_ = {static_cast<std::byte*>(start), layout_.board.size_bytes};
    return {};
  }
  CCOM_TRY_ASSIGN(segment_, SharedSegment::create(layout_.size_bytes, layout_.reserve_bytes));
  board_ = segment_->bytes().subspan(layout_.board.offset_bytes, layout_.board.size_bytes);
  CCOM_TRY_ASSIGN(server_, SegmentServer::create(key_));
  put_segment(server_->path(), segment_);
  return {};
}

Status HostSegment::share(const std::string& leader_path, const std::vector<uint64_t>& processes,
                          const WaitLimit& limit) {
  CCOM_ASSERT(processes.size() == static_cast<size_t>(ranks_));
  if (ranks_ == 1) return {};
  if (is_leader()) {
    const std::set<uint64_t> distinct(processes.begin(), processes.end());
    const Status served = server_->serve(*segment_, static_cast<int>(distinct.size()) - 1, limit);
    server_.reset();
    return served;
  }
  const auto self = processes.begin() + local_rank_;
  if (std::find(processes.begin(), self, *self) != self) {
    CCOM_TRY_ASSIGN(segment_, await_segment(leader_path, limit));
  } else {
    Result<std::unique_ptr<SharedSegment>> fetched = fetch_segment(leader_path, layout_.size_bytes, key_, limit);
    if (fetched) segment_ = *std::move(fetched);
    put_segment(leader_path, fetched ? Result<std::shared_ptr<SharedSegment>>(segment_)
                                     : Result<std::shared_ptr<SharedSegment>>(fetched.error()));
    if (!fetched) return std::move(fetched).error();
  }
  board_ = segment_->bytes().subspan(layout_.board.offset_bytes, layout_.board.size_bytes);
  return {};
}

}  // namespace ccom
