// SPDX-License-Identifier: Apache-2.0
#include "node/flag_barrier.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "liveness/call_mismatch.h"
#include "liveness/long_wait.h"

namespace ccom {
namespace {

constexpr std::chrono::milliseconds kLeaveTime{1000};

uint32_t number_of(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

// The half that holds the number.
uint32_t* futex_word(std::atomic<uint64_t>& word) {
  return reinterpret_cast<uint32_t*>(&word) + (std::endian::native == std::endian::little ? 1 : 0);
}

// But for the way that they run (ShmCollectives).
bool equal_calls(const CallWords& a, const CallWords& b) {
  return std::equal(a.begin(), a.end() - 1, b.begin()) && static_cast<uint32_t>(a[4]) == static_cast<uint32_t>(b[4]);
}

}  // namespace

template <uint32_t banks>
BasicFlagBarrier<banks>::BasicFlagBarrier(Config config, std::byte* region, const NodeLayout& layout, Monitor& monitor,
                                          Describe describe)
    : lines_(&layout.template lines<banks>(region, 0)),
      local_rank_(config.local_rank),
      size_(static_cast<int>(config.ranks.size())),
      fence_(config.asymmetric),
      mails_(region + layout.block_offset(0)),
      block_bytes_(layout.block_bytes()),
      mail_banks_(banks == kMeetBanks ? banks : layout.ahead_mails()),
      long_mails_at_(layout.long_mails_offset()),
      long_mails_bytes_(kLongMails * layout.long_mail_bytes()),
      ring_(std::min(long_mails_bytes_, config.most_long_mails_bytes)),
      monitor_(monitor),
      config_(std::move(config)),
      describe_(std::move(describe)) {}

template <uint32_t banks>
void BasicFlagBarrier<banks>::wake_sleepers(FlagLine& line) {
  futex_wake_all(futex_word(line.word));
}

template <uint32_t banks>
Status BasicFlagBarrier<banks>::wait(int local_rank) {
  CCOM_TRY(wait_for(local_rank, number_));
  // One that has gone ahead is in a later call by now; it was in this one.
  const uint64_t seen = line_of(local_rank, number_).word.load(std::memory_order_acquire);
  return number_of(seen) == number_ && seen != word_ ? mismatch(local_rank) : Status();
}

template <uint32_t banks>
Status BasicFlagBarrier<banks>::wait_for_payload(int local_rank) {
  CCOM_TRY(await(local_rank));
  return line_of(local_rank, number_).hash == hash_ ? Status() : mismatch(local_rank);
}

template <uint32_t banks>
Status BasicFlagBarrier<banks>::await_reached(uint32_t number) {
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    if (local_rank != local_rank_) CCOM_TRY(wait_for(local_rank, number));
  }
  met_ = number;
  return {};
}

template <uint32_t banks>
Status BasicFlagBarrier<banks>::await_ring(size_t size_bytes) {
  ring_.free_before(met_);
  if (ring_.has_room(size_bytes)) return {};
  CCOM_TRY(await_reached(ring_.awaited_for(size_bytes, number_)));
  ring_.free_before(met_);
  return {};
}

template <uint32_t banks>
Status BasicFlagBarrier<banks>::wait_for(int local_rank, uint32_t number) {
  const FlagLine& line = line_of(local_rank, number);
  Backoff backoff(config_.policy);
  LongWait long_wait(monitor_, rank_of(local_rank_));
  while (is_before(number_of(line.word.load(std::memory_order_acquire)), number)) {
    if (monitor_.failed()) return monitor_.status();
    const Backoff::Next next = backoff.step();
    if (backoff.has_lasted() && !long_wait.is_noted()) long_wait.note(rank_of(local_rank), backoff.since());
    if (next == Backoff::Next::Poll) continue;
    if (!deadline_) deadline_ = Deadline::after_ms(timeout_.count());
    if (backoff.now() >= deadline_->when()) return timeout_status(monitor_, rank_of(local_rank_), late(number), true);
    if (long_wait.is_due(backoff.now())) long_wait.react(late(number), true);
    CCOM_TRY(monitor_.check());
    sleep(local_rank, number, std::min(backoff.slice(), deadline_->left()));
  }
  return {};
}

template <uint32_t banks>
void BasicFlagBarrier<banks>::sleep(int local_rank, uint32_t number, std::chrono::nanoseconds at_most) {
  Lines& other = lines(local_rank);
  std::atomic<uint64_t>& word = line_of(local_rank, number).word;
  other.sleepers.fetch_add(1, std::memory_order_relaxed);
  fence_.heavy();
  const uint32_t seen = number_of(word.load(std::memory_order_acquire));
  if (is_before(seen, number) && !monitor_.failed()) futex_wait(futex_word(word), seen, at_most);
  other.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

template <uint32_t banks>
void BasicFlagBarrier<banks>::wake() {
  fence_.light();
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    Lines& of = lines(local_rank);
    if (of.sleepers.load(std::memory_order_relaxed) == 0) continue;
    for (FlagLine& line : of.line) futex_wake_all(futex_word(line.word));
  }
}

template <uint32_t banks>
Status BasicFlagBarrier<banks>::mismatch(int local_rank) const {
  const CallWords theirs = lines(local_rank).descriptor[number_ % banks];
  return find_mismatch(monitor_, {rank_of(local_rank_), describe_(words_), words_[1]},
                       {rank_of(local_rank), describe_(theirs), theirs[1]},
                       equal_calls(theirs, words_) ? " (equal calls, run in different ways: a bug in ccom)" : "");
}

template <uint32_t banks>
std::vector<Rank> BasicFlagBarrier<banks>::late(uint32_t number) const {
  std::vector<Rank> ranks;
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    const uint32_t reached = number_of(line_of(local_rank, number).word.load());
    if (local_rank != local_rank_ && is_before(reached, number)) ranks.push_back(rank_of(local_rank));
  }
  return ranks;
}

template <uint32_t banks>
void BasicFlagBarrier<banks>::say_left() {
  own().has_left.store(1, std::memory_order_release);
  full_fence();
}

template <uint32_t banks>
bool BasicFlagBarrier<banks>::has_anybody_left() const {
  full_fence();
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    if (lines(local_rank).has_left.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

template <uint32_t banks>
bool BasicFlagBarrier<banks>::await_leavers(uint32_t opening, uint32_t closing) const {
  const auto is_out = [&](int local_rank) {
    const Lines& other = lines(local_rank);
    uint32_t reached = number_of(other.line[0].word.load(std::memory_order_acquire));
    for (uint32_t bank = 1; bank < banks; ++bank) {
      const uint32_t number = number_of(other.line[bank].word.load(std::memory_order_acquire));
      if (is_before(reached, number)) reached = number;
    }
    const bool has_finished = !is_before(number_, closing) && !is_before(reached, closing);
    return is_before(reached, opening) || has_finished || other.has_left.load(std::memory_order_acquire) != 0 ||
           monitor_.has_ended(local_rank);
  };
  const Deadline deadline = Deadline::after(kLeaveTime);
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    while (local_rank != local_rank_ && !is_out(local_rank)) {
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  return true;
}

template class BasicFlagBarrier<kMeetBanks>;
template class BasicFlagBarrier<kAheadBanks>;

}  // namespace ccom
