// SPDX-License-Identifier: Apache-2.0
#include "node/meeting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <thread>

namespace ccom {
namespace {

constexpr std::chrono::milliseconds kLeaveTime{1000};

// The low half of a sequence, which is what changes.
uint32_t* futex_word(std::atomic<uint64_t>& sequence) {
  return reinterpret_cast<uint32_t*>(&sequence) + (std::endian::native == std::endian::big ? 1 : 0);
}

// Not the private kind: the other side is usually another process.
void futex_wake(std::atomic<uint64_t>& sequence) {
  ::syscall(SYS_futex, futex_word(sequence), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
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

Meeting::Meeting(Config config, std::byte* region, const NodeLayout& layout, Monitor& monitor, Describe describe)
    : config_(std::move(config)), monitor_(monitor), describe_(std::move(describe)), fence_(config_.asymmetric) {
  for (int place = 0; place < size(); ++place) {
    blocks_.push_back(reinterpret_cast<RankBlock*>(region + layout.block_offset(place)));
  }
  for (int k = 1; k < size(); ++k) others_.push_back((config_.place + k) % size());
}

void Meeting::begin(const CallWords& words, std::chrono::milliseconds timeout) {
  words_ = words;
  timeout_ = timeout;
  deadline_.reset();
  hash_ = hash_of(words);
}

void Meeting::arrive() {
  RankBlock& block = own();
  FlagLine& line = block.line[bank()];
  line.hash = hash_;
  std::ranges::copy(words_, block.descriptor[bank()].begin());
  line.sequence.store(++number_, std::memory_order_release);
  fence_.light();
  if (block.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]] futex_wake(line.sequence);
}

Status Meeting::wait(int place) {
  const FlagLine& line = block(place).line[number_ & 1];
  Backoff backoff(config_.policy);
  while (line.sequence.load(std::memory_order_acquire) < number_) {
    if (monitor_.failed()) return monitor_.status();
    if (backoff.step() == Backoff::Next::Poll) continue;
    if (!deadline_) deadline_ = Deadline::after(timeout_);
    if (backoff.now() >= deadline_->when()) return late();
    CCOM_TRY(monitor_.check());
    sleep(place, std::min(backoff.slice(), deadline_->left()));
  }
  return {};
}

void Meeting::sleep(int place, std::chrono::nanoseconds at_most) {
  RankBlock& other = block(place);
  std::atomic<uint64_t>& sequence = other.line[number_ & 1].sequence;
  other.sleepers.fetch_add(1, std::memory_order_relaxed);
  fence_.heavy();
  const uint64_t seen = sequence.load(std::memory_order_acquire);
  if (seen < number_ && !monitor_.failed() && at_most.count() > 0) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(at_most.count() / 1000000000);
    timeout.tv_nsec = static_cast<long>(at_most.count() % 1000000000);
    ::syscall(SYS_futex, futex_word(sequence), FUTEX_WAIT, static_cast<uint32_t>(seen), &timeout, nullptr, 0);
  }
  other.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void Meeting::wake() {
  for (RankBlock* const block : blocks_) {
    for (FlagLine& line : block->line) futex_wake(line.sequence);
  }
}

Status Meeting::mismatch(int place) const {
  CallWords theirs;
  std::copy_n(block(place).descriptor[number_ & 1].begin(), theirs.size(), theirs.begin());
  const Rank self = rank_at(config_.place);
  const Rank other = rank_at(place);
  return error(Code::Mismatch, "ranks made different calls: rank %d: %s; rank %d: %s%s", self, describe_(words_).c_str(),
               other, describe_(theirs).c_str(), theirs == words_ ? " (equal calls: a bug in ccom)" : "")
      .with_peers({std::min(self, other), std::max(self, other)})
      .with_cure("make the same calls in the same order with equal count, type, operator and root on all ranks");
}

Status Meeting::late() const {
  std::vector<int> ranks;
  std::string who;
  for (int place = 0; place < size(); ++place) {
    if (place == config_.place || block(place).line[number_ & 1].sequence.load() >= number_) continue;
    ranks.push_back(rank_at(place));
    who += (who.empty() ? "" : ", ") + std::to_string(rank_at(place));
  }
  return error(Code::Timeout, "rank %d waited in vain for rank%s %s", rank_at(config_.place),
               ranks.size() == 1 ? "" : "s", who.c_str())
      .with_peers(ranks)
      .with_cure("look what these ranks are doing; raise timeoutMs (CCOM_TIMEOUT_MS) if they are only slow");
}

bool Meeting::leave(bool was_reached) {
  own().has_left.store(1, std::memory_order_release);
  if (!was_reached) return true;
  const Deadline deadline = Deadline::after(kLeaveTime);
  const auto dead = [this](int place) {
    const std::vector<int>& blamed = monitor_.status().peers();
    return monitor_.status().code() == Code::RemoteError && std::ranges::find(blamed, rank_at(place)) != blamed.end();
  };
  for (const int place : others_) {
    while (block(place).has_left.load(std::memory_order_acquire) == 0 && !dead(place)) {
      if (deadline.passed()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  return true;
}

}  // namespace ccom
