// SPDX-License-Identifier: Apache-2.0
//
// The barrier of the ranks of a host: each says in a line of its own that it has arrived, and polls the others' lines.
//
// Barriers are numbered from 1 and never reset, so there is no state to confuse between calls (numbers wrap; ranks are
// never more than `banks` apart); the lines of a rank, used in turn, keep a payload until everybody has read it. No
// system call, lock or allocation unless somebody sleeps. Every wait looks at the communicator's error and at its
// deadline.
//
// With two banks (FlagBarrier) nobody writes the next payload but one before all have read this one: the barriers of
// plans are made so, and in others everybody waits for everybody. With more (AheadBarrier) a rank waits for those alone
// whose payload it reads, and may go ahead of the others; before it uses a line again, await_room() waits for them.
// A rank has one of each; their numbers are independent.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/backoff.h"
#include "base/status.h"
#include "base/time.h"
#include "liveness/monitor.h"
#include "node/fences.h"
#include "node/layout.h"
#include "node/mail_ring.h"

namespace ccom {

// What a call is, in words that are equal on all ranks: barriers compare them. The first tells communicators apart,
// the second is numbered() of base/call.h.
using CallWords = std::array<uint64_t, 5>;

// What a word adds to the hash of a call's words, which is the exclusive or of all.
inline uint64_t hash_part(size_t index, uint64_t word) {
  constexpr std::array<uint64_t, 5> kFactors = {0x9e3779b97f4a7c15U, 0xbf58476d1ce4e5b9U, 0x94d049bb133111ebU,
                                                0xff51afd7ed558ccdU, 0xc4ceb9fe1a85ec53U};
  const uint64_t product = (word + kFactors[index]) * kFactors[(index + 1) % 5];
  return std::rotl(product ^ product >> 32, static_cast<int>(13 * index));
}
inline uint64_t hash_of(const CallWords& words) {
  uint64_t hash = 0;
  for (size_t i = 0; i < words.size(); ++i) hash ^= hash_part(i, words[i]);
  return hash;
}

struct FlagBarrierConfig {
  int local_rank = 0;       // of this rank: its index in `ranks`
  std::vector<Rank> ranks;  // of the host, ascending
  bool asymmetric = false;  // AsymmetricFence::available() on every rank
  WaitPolicy policy;
  // Of the memory for long mails so much is used: more is colder, less lets ranks go less far ahead.
  size_t most_long_mails_bytes = SIZE_MAX;
};

// Belongs to one thread at a time, but for wake().
template <uint32_t banks>
class BasicFlagBarrier {
 public:
  using Config = FlagBarrierConfig;
  using Describe = std::function<std::string(const CallWords&)>;

  // The region and the monitor outlive the barrier. describe: for the text of a mismatch.
  BasicFlagBarrier(Config config, std::byte* region, const NodeLayout& layout, Monitor& monitor, Describe describe);

  // The call that the next barriers belong to. Its time begins with its first wait that is not over at once.
  void begin(const CallWords& words, std::chrono::milliseconds timeout) { begin(words, hash_of(words), timeout); }
  void begin(const CallWords& words, uint64_t hash, std::chrono::milliseconds timeout) {
    words_ = words;
    hash_ = hash;
    timeout_ = timeout;
    deadline_.reset();
  }
  // The next arrival's payload, to be written before arrive().
  std::byte* payload() { return line_of(local_rank_, number_ + 1).payload; }
  // Of so many bytes, likewise; once for an arrival.
  std::byte* mail(size_t size_bytes) {
    if (!is_long(size_bytes)) [[likely]]
      return mail_in(local_rank_, number_ + 1);
    const uint64_t offset = ring_.take(size_bytes, number_ + 1);
    std::memcpy(payload(), &offset, sizeof offset);
    return block(local_rank_) + long_mails_at_ + offset;
  }
  // Before that, where ranks go ahead: until everybody is done with the payload of so many bytes that this rank wrote
  // to the same place. A rank that has to wait does so until half of the places are free, so that it seldom has to.
  Status await_room(size_t size_bytes) requires(banks > kMeetBanks) {
    const bool has_mail = size_bytes > kLinePayloadBytes && !is_long(size_bytes);
    const uint32_t places = has_mail ? mail_banks_ : banks;
    const uint32_t needed = number_ + 2 - places;  // who has arrived there reads nothing older
    if (is_before(met_, needed)) [[unlikely]]
      CCOM_TRY(await_reached(needed + places / 2));
    return is_long(size_bytes) ? await_ring(size_bytes) : Status();
  }
  [[gnu::always_inline]] void arrive() {
    Lines& mine = own();
    word_ = word_at(++number_);
    FlagLine& line = line_of(local_rank_, number_);
    line.hash = hash_;
    mine.descriptor[number_ % banks] = words_;
    line.word.store(word_, std::memory_order_release);
    fence_.light();
    if (mine.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake_sleepers(line);
  }
  // Of the ring in which this rank's mails of more than kAheadMailBytes lie.
  size_t long_mails_bytes() const { return ring_.size_bytes(); }
  // After arrive(): until everybody has arrived, in whatever call.
  Status await_everybody() { return await_reached(number_); }
  // The call in which that rank has arrived at this barrier.
  const CallWords& words_of(int local_rank) const { return lines(local_rank).descriptor[number_ % banks]; }
  // Passes the next barrier without publishing anything: nobody waits for this rank there. Its line stays what it was.
  void arrive_silently() { word_ = word_at(++number_); }

  // After arrive(): until that rank has arrived too. Mismatch if it is in another call.
  Status await(int local_rank) {
    if (line_of(local_rank, number_).word.load(std::memory_order_acquire) != word_) [[unlikely]] {
      return wait(local_rank);
    }
    return {};
  }
  // The same where that rank does not use its line again before this rank's next arrival, so that the whole hash can be
  // compared and the payload can be read.
  Status await_payload(int local_rank) { return is_here(local_rank) ? Status() : wait_for_payload(local_rank); }
  // Until everybody has arrived; likewise.
  Status await_all() {
    for (int k = 1, local_rank = local_rank_; k < size(); ++k) {  // beginning behind this one
      if (++local_rank == size()) local_rank = 0;
      if (is_here(local_rank)) [[likely]]
        continue;
      if (Status status = wait_for_payload(local_rank); !status.is_ok()) [[unlikely]]
        return status;
    }
    return {};
  }
  // What that rank said at this barrier, after one of the two.
  std::byte* payload_of(int local_rank) const { return line_of(local_rank, number_).payload; }
  std::byte* mail_of(int local_rank, size_t size_bytes) const {
    if (!is_long(size_bytes)) [[likely]]
      return mail_in(local_rank, number_);
    uint64_t offset = 0;
    std::memcpy(&offset, payload_of(local_rank), sizeof offset);
    return block(local_rank) + long_mails_at_ + std::min<uint64_t>(offset, long_mails_bytes_ - size_bytes);
  }

  // ---- Leaving after an error, for those who let others reach their buffers. A rank is at nobody's buffers before it
  // has found, after the barrier that tells where they are, that nobody has left; nor after it has arrived at the last
  // barrier of the call; nor once it has left itself.
  //
  // Says that this rank will not touch anybody's buffers again; for good. To be called when the communicator's error is
  // known already.
  void say_left();
  // Whether anybody has. After a full fence: either we see it, or who leaves sees that we have arrived.
  bool has_anybody_left() const;
  // Until everybody is out of this rank's buffers, which were shown at barrier `opening`; the last barrier of the
  // call is `closing`. At most a second: false.
  bool await_leavers(uint32_t opening, uint32_t closing) const;
  uint32_t number() const { return number_; }  // of the last barrier that this rank arrived at

  // Ends all sleep on this host. Thread-safe.
  void wake();

  int local_rank() const { return local_rank_; }
  int size() const { return size_; }
  Rank rank_of(int local_rank) const { return config_.ranks[static_cast<size_t>(local_rank)]; }

 private:
  using Lines = RankLines<banks>;

  Lines& lines(int local_rank) const { return lines_[local_rank]; }
  Lines& own() { return lines_[local_rank_]; }
  FlagLine& line_of(int local_rank, uint32_t number) const { return lines(local_rank).line[number % banks]; }
  std::byte* block(int local_rank) const { return mails_ + static_cast<size_t>(local_rank) * block_bytes_; }
  std::byte* mail_in(int local_rank, uint32_t number) const {
    return block(local_rank) + NodeLayout::mail_offset<banks>(number % mail_banks_);
  }
  static bool is_long(size_t size_bytes) { return banks > kMeetBanks && size_bytes > kAheadMailBytes; }
  Status await_ring(size_t size_bytes);
  // In this call.
  bool is_here(int local_rank) const {
    const FlagLine& line = line_of(local_rank, number_);
    return line.word.load(std::memory_order_acquire) == word_ && line.hash == hash_;
  }
  uint64_t word_at(uint32_t number) const { return static_cast<uint64_t>(number) << 32 | (hash_ & 0xffffffff); }
  static void wake_sleepers(FlagLine& line);
  Status wait(int local_rank);
  Status wait_for_payload(int local_rank);
  Status wait_for(int local_rank, uint32_t number);
  Status await_reached(uint32_t number);  // by everybody
  void sleep(int local_rank, uint32_t number, std::chrono::nanoseconds at_most);
  Status mismatch(int local_rank) const;
  std::vector<Rank> late(uint32_t number) const;  // who has not arrived there

  // What every call needs first, so that it shares cache lines.
  Lines* const lines_;
  const int local_rank_, size_;
  const AsymmetricFence fence_;
  uint32_t number_ = 0;  // of the last barrier that this rank arrived at
  uint64_t hash_ = 0;
  uint64_t word_ = 0;  // of this rank's last arrival, and so of everybody's
  CallWords words_{};
  std::byte* const mails_;  // the first rank's block
  const size_t block_bytes_;
  const uint32_t mail_banks_;
  const size_t long_mails_at_, long_mails_bytes_;
  MailRing ring_;
  Monitor& monitor_;
  std::chrono::milliseconds timeout_{};
  std::optional<Deadline> deadline_;
  uint32_t met_ = 0;  // everybody has arrived here, and reads nothing of barriers before
  const Config config_;
  const Describe describe_;
};

using FlagBarrier = BasicFlagBarrier<kMeetBanks>;
using AheadBarrier = BasicFlagBarrier<kAheadBanks>;

}  // namespace ccom
