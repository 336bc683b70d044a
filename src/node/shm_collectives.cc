// SPDX-License-Identifier: Apache-2.0
#include "node/shm_collectives.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "base/call.h"
#include "base/log.h"
#include "node/lines.h"

namespace ccom {
namespace {

constexpr size_t kFewRanks = 32;  // whose addresses fit on the stack, which is in the cache

// A call without memory ends in order: peers may be at this rank's buffers, and wait for it.
template <typename Fn>
[[gnu::always_inline]] inline Status run_or_say_why(Rank self, Fn run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return error(Code::OutOfMemory, "rank %d ran out of memory", self);
  }
}

}  // namespace

ShmCollectives::ShmCollectives(NodeConfig config, Monitor& monitor, FlagBarrier::Describe describe, Fail fail)
    : config_(std::move(config)),
      monitor_(monitor),
      barrier_(config_.barrier, config_.segment->bytes().data() + config_.region_offset, config_.layout, monitor,
               describe),
      ahead_(config_.barrier, config_.segment->bytes().data() + config_.region_offset, config_.layout, monitor,
             std::move(describe)),
      counts_(config_.segment->bytes().data() + config_.region_offset, config_.layout, barrier_.local_rank()),
      fail_(std::move(fail)),
      reach_map_(config_.peers, config_.arena, config_.means),
      staging_(*config_.segment, config_.region_offset, config_.layout, barrier_.local_rank()),
      choices_(config_.expect, config_.tries_ways),
      room_{barrier_, monitor_, reach_map_, config_.prove, staging_, reducers_, choices_, sources_, targets_, read_} {
  for (const CollectiveTraits& traits : kCollectiveTraits)
    CCOM_ASSERT(small_bytes(traits.collective) <= config_.layout.small_bytes(is_rooted(traits.collective)));
  sources_.resize(static_cast<size_t>(size()));
  targets_.resize(static_cast<size_t>(size()) + 1);
}

Status ShmCollectives::open() {
  if (barrier_.local_rank() == 0) {
    CCOM_TRY(config_.segment->reserve(config_.region_offset, config_.layout.lines_bytes()));
    lines_bytes_ += config_.layout.lines_bytes();
  }
  const size_t offset = config_.region_offset + config_.layout.block_offset(barrier_.local_rank());
  CCOM_TRY(config_.segment->reserve(offset, config_.layout.mail_bytes()));
  lines_bytes_ += config_.layout.mail_bytes();
  return {};
}

Status ShmCollectives::run(const NodeCall& call, const CallWords& words, std::chrono::milliseconds timeout) {
  if (call.views == nullptr && call.task->is_plain()) {
    const NodeTask& task = call.task->task();
    if (std::optional<SmallCall> small = small_call(task.collective, task.root, call.type, call.count)) {
      if (task.sums) small->reducer = reducers_.get(call, task.completes);
      small->user = call.user;
      return run_small(*small, {call.input, call.output, call.in_place}, words, hash_of(words), timeout);
    }
  }
  was_small_ = false;
  last_ = nullptr;
  if (monitor_.failed()) [[unlikely]]
    return give_up(monitor_.status());
  choose_way(call, words);
  // Part of the call: ranks that took different ways would wait for each other, or read what nobody has written.
  CallWords words_of_way = words;
  words_of_way[4] |= static_cast<uint64_t>(call.task->way_word()) << 32;
  barrier_.begin(words_of_way, timeout);
  if (call.bound == nullptr) unkept_ = BoundCall();
  BoundCall& bound = call.bound != nullptr ? *call.bound : unkept_;
  std::optional<TiledCall> tiled;
  Status status = run_or_say_why(self(), [&] {
    tiled.emplace(call, bound, room_);
    last_ = &bound;
    return tiled->run();
  });
  if (!status.is_ok()) [[unlikely]] {
    status = find_counts(std::move(status), words);
    if (are_parts_unlike_) return status;
    status = give_up(status);
    if (tiled && tiled->exposure()) end_exposure(*tiled->exposure());
  }
  return status;
}

void ShmCollectives::choose_way(const NodeCall& call, const CallWords& words) {
  PreparedTask& task = *call.task;
  const Collective collective = task.task().collective;
  const auto kind_of = [&](uint64_t kind) {
    return CallChoices::kind_of_calls(kind, call.unit_bytes(), task.most_given(), collective);
  };
  // An alltoallv of equal parts, as far as this rank knows.
  if ((words[3] & kIsV) != 0 && collective == Collective::AllToAll && call.views == nullptr)
    return task.use(choices_.look_up(kind_of(words[3] & ~kIsV), task.task(), task.ways()));
  task.use(choices_.begin(kind_of(words[3]), task.task(), task.ways()));
}

std::string_view ShmCollectives::last_way(PreparedTask& task) const {
  if (was_small_ || last_ == nullptr) return "";
  const std::span<const Reach> reach = last_->reach();
  bool are_inputs_reached = true;  // of those who give
  for (size_t rank = 0; rank < reach.size(); ++rank)
    are_inputs_reached &= reach[rank].input || task.task().blocks.gives[rank].empty();
  return task.way_text({.input = are_inputs_reached, .output = std::ranges::any_of(reach, &Reach::output)});
}

Status ShmCollectives::give_up(const Status& cause) {
  Status in_force = fail_(cause);
  barrier_.say_left();
  return in_force;
}

void ShmCollectives::end_exposure(const TiledCall::Exposure& exposure) {
  if (barrier_.await_leavers(exposure.first_barrier, exposure.last_barrier) || exposure.output.empty()) return;
  const Status detached =
      run_or_say_why(self(), [&] { return config_.arena->detach(exposure.output.data(), exposure.output.size()); });
  if (detached.is_ok()) {
    log(LogLevel::Warn,
        "rank %d: a peer in the failed call has not answered for a second; other ranks cannot map this rank's buffer "
        "from now on, so that what the peer still writes does not get there",
        self());
  } else {
    log(LogLevel::Error, "rank %d: a peer has not answered for a second and may still write to a buffer: %s", self(),
        detached.message().c_str());
  }
}

// ---- Small calls ----------------------------------------------------------------------------------------------------

std::optional<SmallCall> ShmCollectives::small_call(Collective collective, Rank root, DataType type,
                                                    size_t count) const {
  const size_t unit_bytes = count * size_of(type);
  if (!is_small(collective, unit_bytes)) return std::nullopt;
  return SmallCall{collective, root, count, unit_bytes, shown_bytes(collective, size(), unit_bytes)};
}

namespace {

template <uint32_t banks>
[[gnu::always_inline]] inline std::byte* shown_by(const BasicFlagBarrier<banks>& barrier, int local_rank,
                                                  size_t shown_bytes) {
  return shown_bytes <= kLinePayloadBytes ? barrier.payload_of(local_rank) : barrier.mail_of(local_rank, shown_bytes);
}

// A copy whose length the compiler does not know is a call; tiny ones need none.
[[gnu::always_inline]] inline void copy_small(std::byte* to, const std::byte* from, size_t size_bytes) {
  if (size_bytes == sizeof(uint64_t)) {
    std::memcpy(to, from, sizeof(uint64_t));
  } else if (size_bytes == sizeof(uint32_t)) {
    std::memcpy(to, from, sizeof(uint32_t));
  } else {
    std::memcpy(to, from, size_bytes);
  }
}

}  // namespace

template <uint32_t banks>
[[gnu::always_inline]] inline void ShmCollectives::show(BasicFlagBarrier<banks>& barrier, const SmallCall& call,
                                                        const std::byte* input) {
  const size_t shown = call.shown_bytes, unit = call.unit_bytes;
  if (shown == 0) return;
  if (shown <= kLinePayloadBytes) return copy_small(barrier.payload(), input, shown);
  std::byte* const mail = barrier.mail(shown);
  if (shown == unit) return copy_small(mail, input, shown);
  // A unit for each rank: the own one is for nobody else.
  const size_t own = static_cast<size_t>(barrier.local_rank()) * unit, rest = own + unit;
  copy_small(mail, input, own);
  copy_small(mail + rest, input + rest, shown - rest);
}

// What this rank has read of the other one's mail, if there are two: that one stores to it again before the barrier
// after the next.
template <uint32_t banks>
[[gnu::always_inline]] inline void ShmCollectives::claim_read(const BasicFlagBarrier<banks>& barrier,
                                                              const SmallCall& call) {
  if (!config_.claims_mail || size() != 2 || call.shown_bytes <= kLinePayloadBytes) return;
  const size_t unit = call.unit_bytes;
  const size_t begin = call.shown_bytes == unit ? 0 : static_cast<size_t>(barrier.local_rank()) * unit;
  claim_lines(barrier.mail_of(1 - barrier.local_rank(), call.shown_bytes) + begin, unit);
}

// offset: of the first element in what each rank shows, in bytes.
template <uint32_t banks>
[[gnu::always_inline]] inline void ShmCollectives::reduce_shown(const BasicFlagBarrier<banks>& barrier,
                                                                const SmallCall& call, const SmallBuffers& buffers,
                                                                size_t offset) {
  std::array<const std::byte*, kFewRanks> few;
  const auto ranks = static_cast<size_t>(size());
  const std::byte** const sources = ranks > kFewRanks ? sources_.data() : few.data();
  for (int local_rank = 0; local_rank < size(); ++local_rank)
    sources[local_rank] = shown_by(barrier, local_rank, call.shown_bytes) + offset;
  sources[barrier.local_rank()] = buffers.input + offset;
  const size_t first_element = offset == 0 ? 0 : offset / (call.unit_bytes / call.count);
  call.reducer({sources, ranks}, {&buffers.output, 1}, call.count, 0, first_element);
}

// offset: in what each rank shows, of what this rank gets, in bytes.
template <uint32_t banks>
void ShmCollectives::gather_shown(const BasicFlagBarrier<banks>& barrier, const SmallCall& call,
                                  const SmallBuffers& buffers, size_t offset) {
  const size_t unit = call.unit_bytes;
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    std::byte* const to = buffers.output + static_cast<size_t>(local_rank) * unit;
    if (local_rank != barrier.local_rank()) {
      copy_small(to, shown_by(barrier, local_rank, call.shown_bytes) + offset, unit);
    } else if (!buffers.in_place) {
      copy_small(to, buffers.input + offset, unit);
    }
  }
}

// Likewise, of what the root shows.
template <uint32_t banks>
[[gnu::always_inline]] inline void ShmCollectives::take_shown(const BasicFlagBarrier<banks>& barrier,
                                                              const SmallCall& call, const SmallBuffers& buffers,
                                                              size_t offset) {
  if (call.root != barrier.local_rank()) {
    copy_small(buffers.output, shown_by(barrier, call.root, call.shown_bytes) + offset, call.unit_bytes);
  } else if (!buffers.in_place) {
    copy_small(buffers.output, buffers.input + offset, call.unit_bytes);
  }
}

// What the plans one_shot and direct do after their barrier.
template <uint32_t banks>
[[gnu::always_inline]] inline void ShmCollectives::combine_shown(const BasicFlagBarrier<banks>& barrier,
                                                                 const SmallCall& call, const SmallBuffers& buffers) {
  if (call.shown_bytes == 0) return;
  const size_t own = static_cast<size_t>(barrier.local_rank()) * call.unit_bytes;
  const bool is_root = call.root == barrier.local_rank();
  switch (call.collective) {
    case Collective::AllReduce: return reduce_shown(barrier, call, buffers, 0);
    case Collective::ReduceScatter: return reduce_shown(barrier, call, buffers, own);
    case Collective::Reduce: return is_root ? reduce_shown(barrier, call, buffers, 0) : void();
    case Collective::AllGather: return gather_shown(barrier, call, buffers, 0);
    case Collective::Gather: return is_root ? gather_shown(barrier, call, buffers, 0) : void();
    case Collective::AllToAll: return gather_shown(barrier, call, buffers, own);
    case Collective::Broadcast: return take_shown(barrier, call, buffers, 0);
    case Collective::Scatter: return take_shown(barrier, call, buffers, own);
    default: return;
  }
}

[[gnu::always_inline]] inline Status ShmCollectives::meet(const SmallCall& call, const SmallBuffers& buffers) {
  show(barrier_, call, buffers.input);
  barrier_.arrive();
  CCOM_TRY(barrier_.await_all());
  combine_shown(barrier_, call, buffers);
  claim_read(barrier_, call);
  return {};
}

// Either the root alone shows something, or it alone reads.
Status ShmCollectives::go_ahead(const SmallCall& call, const SmallBuffers& buffers) {
  const bool root_shows = only_root_reads(call.collective);
  const bool reads_others = (call.root == ahead_.local_rank()) != root_shows;
  if (call.shown_bytes > kAheadMailBytes && !reads_others) {
    CCOM_TRY(staging_.reserve_long_mails(ahead_.long_mails_bytes()));
  }
  CCOM_TRY(ahead_.await_room(reads_others ? 0 : call.shown_bytes));
  if (!reads_others) show(ahead_, call, buffers.input);
  ahead_.arrive();
  if (reads_others) CCOM_TRY(root_shows ? ahead_.await_payload(call.root) : ahead_.await_all());
  combine_shown(ahead_, call, buffers);
  if (reads_others) claim_read(ahead_, call);
  return {};
}

Status ShmCollectives::run_small(const SmallCall& call, const SmallBuffers& buffers, const CallWords& words,
                                 uint64_t hash, std::chrono::milliseconds timeout) {
  if (monitor_.failed()) [[unlikely]]
    return give_up(monitor_.status());
  was_small_ = true;
  const bool goes_ahead = call.root >= 0;
  goes_ahead ? ahead_.begin(words, hash, timeout) : barrier_.begin(words, hash, timeout);
  const auto run = [&]() __attribute__((always_inline)) {
    return goes_ahead ? go_ahead(call, buffers) : meet(call, buffers);
  };
  Status status = run_or_say_why(self(), run);
  if (call.user != nullptr && status.is_ok() && call.user->has_failed()) [[unlikely]]
    status = call.user->failure();
  if (!status.is_ok()) [[unlikely]] {
    status = find_counts(std::move(status), words);
    return are_parts_unlike_ ? status : give_up(status);
  }
  return status;
}

}  // namespace ccom
