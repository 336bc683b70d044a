// SPDX-License-Identifier: Apache-2.0
#include "setup/host_segment.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "base/assert.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "memory/process_memory.h"
#include "memory/process_segments.h"

namespace ccom {
namespace {

constexpr size_t kBoardAlignment = 128;

// At the front of what is in an arena, in a page of its own.
struct Users {
  std::atomic<uint32_t> count;  // ranks that have not given it up
};
constexpr size_t kUsersBytes = 4096;

Users& users_at(const SharedSegment& arena, size_t place) {
  return *reinterpret_cast<Users*>(arena.bytes().data() + place);
}

// What this process's leaders have of its arena, and parts of it that they have given up and other ranks have not:
// these are freed when the others have, at the next look. What a rank has died with stays.
class GivenUp {
 public:
  // Whether so many bytes may be taken: half of the arena is left to the application.
  bool has_room(const Arena& arena, size_t bytes) {
    const Lock lock(mutex_);
    sweep();
    return bytes <= arena.size_bytes() / 2 - std::min(arena.size_bytes() / 2, taken_);
  }
  void take(size_t bytes) {
    const Lock lock(mutex_);
    taken_ += bytes;
  }
  // Without memory for it, it stays taken.
  void add(Arena& arena, size_t place, size_t bytes) noexcept {
    try {
      const Lock lock(mutex_);
      places_.push_back({&arena, place, bytes});
      sweep();
    } catch (const std::bad_alloc&) {
    }
  }

 private:
  struct Place {
    Arena* arena;
    size_t offset, bytes;
  };
  void sweep() CCOM_REQUIRES(mutex_) {
    std::erase_if(places_, [this](const Place& place) CCOM_REQUIRES(mutex_) {
      SharedSegment& segment = place.arena->segment();
      if (users_at(segment, place.offset).count.load(std::memory_order_acquire) != 0) return false;
      const Status freed = place.arena->free(segment.bytes().data() + place.offset);
      if (!freed.is_ok()) log(LogLevel::Warn, "memory of a communicator that has ended: %s", freed.message().c_str());
      taken_ -= place.bytes;
      return true;
    });
  }
  Mutex mutex_;
  std::vector<Place> places_ CCOM_GUARDED_BY(mutex_);
  size_t taken_ CCOM_GUARDED_BY(mutex_) = 0;
};
GivenUp& given_up() {
  static constinit PerProcess<GivenUp> instance;
  return instance.get();
}

}  // namespace

HostSegment::HostSegment(const HostSegmentNeeds& needs, int local_rank, const Secret& key)
    : needs_(needs), local_rank_(local_rank), key_(key) {
  CCOM_ASSERT(local_rank >= 0 && local_rank < needs.ranks);
}

HostSegment::~HostSegment() {
  if (place_) users_at(*segment_, *place_).count.fetch_sub(1, std::memory_order_acq_rel);
  if (place_ && is_leader())
    given_up().add(*process_arena(), *place_, kUsersBytes + (is_alone() ? board_alone() : layout_).size_bytes);
}

Status HostSegment::create(Arena* arena) {
  if (!is_leader()) return {};
  const HostSegmentLayout layout = is_alone() ? board_alone() : lay_out(needs_);
  if (arena != nullptr && given_up().has_room(*arena, kUsersBytes + layout.size_bytes)) {
    const Status created = create_in(*arena, layout);
    if (created.is_ok() || created.key() != ErrorKey::ArenaFull) return created;
  }
  Result<std::unique_ptr<SharedSegment>> created = SharedSegment::create(layout.size_bytes, layout.reserve_bytes);
  if (!created && is_alone()) return use_private_memory();
  if (!created) return std::move(created).error();
  use(*std::move(created), 0);
  if (is_alone()) return {};
  CCOM_TRY_ASSIGN(server_, SegmentServer::create(key_));
  put_segment(server_->path(), segment_);
  return {};
}

// Of a rank alone.
HostSegmentLayout HostSegment::board_alone() const {
  HostSegmentLayout layout = lay_out(needs_);
  layout.size_bytes = layout.reserve_bytes = layout.board.size_bytes;
  return layout;
}

// Nobody but this rank needs to see the board: it does without what tools see.
Status HostSegment::use_private_memory() {
  layout_ = lay_out(needs_);
  size_t space = layout_.board.size_bytes + kBoardAlignment;
  private_memory_.resize(space);
  void* start = private_memory_.data();
  std::align(kBoardAlignment, layout_.board.size_bytes, start, space);
  board_ = {static_cast<std::byte*>(start), layout_.board.size_bytes};
  return {};
}

Status HostSegment::create_in(Arena& arena, const HostSegmentLayout& layout) {
  CCOM_TRY_ASSIGN(void* const begin,
                  arena.allocate(kUsersBytes + layout.size_bytes, kUsersBytes + layout.reserve_bytes));
  given_up().take(kUsersBytes + layout.size_bytes);
  place_ = static_cast<size_t>(static_cast<std::byte*>(begin) - arena.segment().bytes().data());
  users_at(arena.segment(), *place_).count.store(static_cast<uint32_t>(needs_.ranks), std::memory_order_release);
  use({std::shared_ptr<SharedSegment>(), &arena.segment()}, *place_ + kUsersBytes);  // it lasts as long as the process
  return {};
}

std::optional<HostSegment::BoardPlace> HostSegment::board_place() const {
  const int fd = segment_ == nullptr ? -1 : segment_->fd();
  return fd < 0 ? std::nullopt : std::optional(BoardPlace{fd, layout_.board.offset_bytes});
}

void HostSegment::abandon() {
  if (place_ && is_leader()) users_at(*segment_, *place_).count.store(1, std::memory_order_release);
}

void HostSegment::use(std::shared_ptr<SharedSegment> segment, size_t offset) {
  segment_ = std::move(segment);
  layout_ = lay_out(needs_, offset);
  board_ = segment_->bytes().subspan(layout_.board.offset_bytes, layout_.board.size_bytes);
}

Status HostSegment::share(const std::string& leader_path, const std::vector<uint64_t>& processes,
                          const WaitLimit& limit) {
  CCOM_ASSERT(processes.size() == static_cast<size_t>(needs_.ranks));
  if (needs_.ranks == 1) return {};
  if (is_leader()) {
    const std::set<uint64_t> distinct(processes.begin(), processes.end());
    const Status served = server_->serve(*segment_, static_cast<int>(distinct.size()) - 1, limit);
    server_.reset();
    return served;
  }
  const auto self = processes.begin() + local_rank_;
  std::shared_ptr<SharedSegment> found;
  if (std::find(processes.begin(), self, *self) != self) {
    CCOM_TRY_ASSIGN(found, await_segment(leader_path, limit));
  } else {
    Result<std::unique_ptr<SharedSegment>> fetched =
        fetch_segment(leader_path, lay_out(needs_).size_bytes, key_, limit);
    if (fetched) found = *std::move(fetched);
    put_segment(leader_path, fetched ? Result<std::shared_ptr<SharedSegment>>(found)
                                     : Result<std::shared_ptr<SharedSegment>>(fetched.error()));
    if (!fetched) return std::move(fetched).error();
  }
  use(std::move(found), 0);
  return {};
}

Status HostSegment::join(std::shared_ptr<SharedSegment> arena, size_t place) {
  if (is_leader()) return {};
  const size_t bytes = kUsersBytes + lay_out(needs_).size_bytes, whole = arena->bytes().size();
  if (place > whole || bytes > whole - place || place % kUsersBytes != 0)
    return error(Code::InternalError, "%zu bytes at %zu are not in an arena of %zu", bytes, place, whole);
  place_ = place;
  use(std::move(arena), place + kUsersBytes);
  return {};
}

}  // namespace ccom
