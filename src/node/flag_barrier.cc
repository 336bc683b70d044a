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
// Numbers wrap.
bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

// The half that holds the number.
uint32_t* futex_word(std::atomic<uint64_t>& word) {
  return reinterpret_cast<uint32_t*>(&word) + (std::endian::native == std::endian::little ? 1 : 0);
}

// But for the way that they run (ShmCollectives).
bool equal_calls(const CallWords& a, const CallWords& b) {
  return std::equal(a.begin(), a.end() - 1, b.begin()) && static_cast<uint32_t>(a[4]) == static_cast<uint32_t>(b[4]);
}

// Independent products, so that they overlap.
uint64_t hash_of(const CallWords& words) {
  constexpr std::array<uint64_t, 5> kFactors = {0x9e3779b97f4a7c15U, 0xbf58476d1ce4e5b9U, 0x94d049bb133111ebU,
                                                0xff51afd7ed558ccdU, 0xc4ceb9fe1a85ec53U};
  uint64_t hash = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t product = (words[i] + kFactors[i]) * kFactors[(i + 1) % 5];
    hash ^= std::rotl(product ^ product >> 32, static_cast<int>(13 * i));
  }
  return hash;
}

}  // namespace

FlagBarrier::FlagBarrier(Config config, std::byte* region, const NodeLayout& layout, Monitor& monitor,
                         Describe describe)
    : lines_(&layout.lines(region, 0)),
      local_rank_(config.local_rank),
      size_(static_cast<int>(config.ranks.size())),
      fence_(config.asymmetric),
      region_(region),
      layout_(layout),
      monitor_(monitor),
      config_(std::move(config)),
      describe_(std::move(describe)) {}

void FlagBarrier::begin(const CallWords& words, std::chrono::milliseconds timeout) {
  words_ = words;
  timeout_ = timeout;
  deadline_.reset();
  hash_ = hash_of(words);
}

void FlagBarrier::arrive() {
  RankLines& mine = own();
  FlagLine& line = mine.line[bank()];
  line.hash = hash_;
  mine.descriptor[bank()] = words_;
  word_ = word_at(++number_);
  line.word.store(word_, std::memory_order_release);
  fence_.light();
  if (mine.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
    futex_wake_all(futex_word(line.word));
}

Status FlagBarrier::wait(int local_rank) {
  const FlagLine& line = lines(local_rank).line[number_ & 1];
  Backoff backoff(config_.policy);
  LongWait long_wait(monitor_, rank_of(local_rank_));
  uint64_t seen = 0;
  while (is_before(number_of(seen = line.word.load(std::memory_order_acquire)), number_)) {
    if (monitor_.failed()) return monitor_.status();
    if (backoff.step() == Backoff::Next::Poll) continue;
    if (!deadline_) deadline_ = Deadline::after_ms(timeout_.count());
    if (backoff.now() >= deadline_->when()) return timeout_status(monitor_, rank_of(local_rank_), late(), true);
    if (long_wait.is_due(backoff.now())) long_wait.react(late(), true);
    CCOM_TRY(monitor_.check());
    sleep(local_rank, std::min(backoff.slice(), deadline_->left()));
  }
  // One that has gone ahead is in a later call by now; it was in this one.
  return number_of(seen) == number_ && seen != word_ ? mismatch(local_rank) : Status();
}

void FlagBarrier::sleep(int local_rank, std::chrono::nanoseconds at_most) {
  RankLines& other = lines(local_rank);
  std::atomic<uint64_t>& word = other.line[number_ & 1].word;
  other.sleepers.fetch_add(1, std::memory_order_relaxed);
  fence_.heavy();
  const uint32_t seen = number_of(word.load(std::memory_order_acquire));
  if (is_before(seen, number_) && !monitor_.failed()) futex_wait(futex_word(word), seen, at_most);
  other.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void FlagBarrier::wake() {
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    for (FlagLine& line : lines(local_rank).line) futex_wake_all(futex_word(line.word));
  }
}

Status FlagBarrier::mismatch(int local_rank) const {
  const CallWords theirs = lines(local_rank).descriptor[number_ & 1];
  return find_mismatch(monitor_, {rank_of(local_rank_), describe_(words_), words_[1]},
                       {rank_of(local_rank), describe_(theirs), theirs[1]},
                       equal_calls(theirs, words_) ? " (equal calls, run in different ways: a bug in ccom)" : "");
}

std::vector<Rank> FlagBarrier::late() const {
  std::vector<Rank> ranks;
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    const uint32_t reached = number_of(lines(local_rank).line[number_ & 1].word.load());
    if (local_rank != local_rank_ && is_before(reached, number_)) ranks.push_back(rank_of(local_rank));
  }
  return ranks;
}

void FlagBarrier::say_left() {
  own().has_left.store(1, std::memory_order_release);
  full_fence();
}

bool FlagBarrier::has_anybody_left() const {
  full_fence();
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    if (lines(local_rank).has_left.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

bool FlagBarrier::await_leavers(uint32_t opening, uint32_t closing) const {
  const auto is_out = [&](int local_rank) {
    const RankLines& other = lines(local_rank);
    const uint32_t even = number_of(other.line[0].word.load(std::memory_order_acquire));
    const uint32_t odd = number_of(other.line[1].word.load(std::memory_order_acquire));
    const uint32_t reached = is_before(even, odd) ? odd : even;
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

}  // namespace ccom
