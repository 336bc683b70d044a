// SPDX-License-Identifier: Apache-2.0
//
// The barrier of the ranks of a host: each says in a line of its own that it has arrived, and polls the others' lines.
//
// Barriers are numbered from 1 and never reset, so there is no state to confuse between calls (numbers wrap; ranks are
// never more than two apart); two lines per rank, used in turn, keep a payload until everybody has read it. No system
// call, lock or allocation unless somebody sleeps. Every wait looks at the communicator's error and at its deadline.
#pragma once

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

namespace ccom {

// What a call is, in words that are equal on all ranks: barriers compare them. The first tells communicators apart,
// the second is numbered() of base/call.h.
using CallWords = std::array<uint64_t, 5>;

// Belongs to one thread at a time, but for wake().
class FlagBarrier {
 public:
  struct Config {
    int local_rank = 0;       // of this rank: its index in `ranks`
    std::vector<Rank> ranks;  // of the host, ascending
    bool asymmetric = false;  // AsymmetricFence::available() on every rank
    WaitPolicy policy;
  };
  using Describe = std::function<std::string(const CallWords&)>;

  // The region and the monitor outlive the barrier. describe: for the text of a mismatch.
  FlagBarrier(Config config, std::byte* region, const NodeLayout& layout, Monitor& monitor, Describe describe);

  // The call that the next barriers belong to. Its time begins with its first wait that is not over at once.
  void begin(const CallWords& words, std::chrono::milliseconds timeout);
  // The next arrival's payload, to be written before arrive().
  std::byte* payload() { return own().line[bank()].payload; }
  std::byte* mail() { return mail_in(local_rank_, bank()); }
  void arrive();
  // Passes the next barrier without publishing anything: nobody waits for this rank there. Its line stays what it was.
  void arrive_silently() { word_ = word_at(++number_); }

  // After arrive(): until that rank has arrived too. Mismatch if it is in another call.
  Status await(int local_rank) {
    if (lines(local_rank).line[number_ & 1].word.load(std::memory_order_acquire) != word_) [[unlikely]] {
      return wait(local_rank);
    }
    return {};
  }
  // Until everybody has. Nobody is more than one barrier ahead, so that the whole hash can be compared and payloads
  // can be read.
  Status await_all() {
    for (int k = 1, local_rank = local_rank_; k < size(); ++k) {  // beginning behind this one
      if (++local_rank == size()) local_rank = 0;
      CCOM_TRY(await(local_rank));
      if (lines(local_rank).line[number_ & 1].hash != hash_) [[unlikely]]
        return mismatch(local_rank);
    }
    return {};
  }
  // What that rank said at this barrier, which everybody waited for.
  const std::byte* payload_of(int local_rank) const { return lines(local_rank).line[number_ & 1].payload; }
  std::byte* mail_of(int local_rank) const { return mail_in(local_rank, number_ & 1); }

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
  RankLines& lines(int local_rank) const { return lines_[local_rank]; }
  RankLines& own() { return lines_[local_rank_]; }
  std::byte* mail_in(int local_rank, size_t bank) const {
    return region_ + layout_.block_offset(local_rank) + layout_.mail_offset(bank);
  }
  size_t bank() const { return (number_ + 1) & 1; }
  uint64_t word_at(uint32_t number) const { return static_cast<uint64_t>(number) << 32 | (hash_ & 0xffffffff); }
  Status wait(int local_rank);
  void sleep(int local_rank, std::chrono::nanoseconds at_most);
  Status mismatch(int local_rank) const;
  std::vector<Rank> late() const;  // who has not arrived

  // What every call needs first, so that it shares cache lines.
  RankLines* const lines_;
  const int local_rank_, size_;
  const AsymmetricFence fence_;
  uint32_t number_ = 0;  // of the last barrier that this rank arrived at
  uint64_t hash_ = 0;
  uint64_t word_ = 0;  // of this rank's last arrival, and so of everybody's
  CallWords words_{};
  std::byte* const region_;
  const NodeLayout layout_;
  Monitor& monitor_;
  std::chrono::milliseconds timeout_{};
  std::optional<Deadline> deadline_;
  const Config config_;
  const Describe describe_;
};

}  // namespace ccom
