// SPDX-License-Identifier: Apache-2.0
//
// How the ranks of a node meet: everyone says in a line of its own that it has arrived, and looks at the others' lines.
//
// Meets are numbered from 1 and never reset, so there is no state to confuse between calls (numbers wrap; ranks are
// never more than two apart); two lines per rank, used in turn, keep a payload until everybody has seen it. No system
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

// What a call is, in words that are equal on all ranks: what meets compare. The first word tells communicators apart.
using CallWords = std::array<uint64_t, 5>;

// Belongs to one thread at a time, but for wake().
class FlagBarrier {
 public:
  struct Config {
    int place = 0;            // of this rank in `ranks`
    std::vector<Rank> ranks;  // of the node, ascending
    bool asymmetric = false;  // AsymmetricFence::available() on every rank
    WaitPolicy policy;
  };
  using Describe = std::function<std::string(const CallWords&)>;

  // The region and the monitor outlive the meeting. describe: for the text of a mismatch.
  FlagBarrier(Config config, std::byte* region, const NodeLayout& layout, Monitor& monitor, Describe describe);

  // The call that the next meets belong to. Its time begins with its first wait that is not over at once.
  void begin(const CallWords& words, std::chrono::milliseconds timeout);
  // The next arrival's payload, to be written before arrive().
  std::byte* payload() { return own().line[bank()].payload; }
  std::byte* mail() { return mail_in(place_, bank()); }
  void arrive();
  // The next meet without a word: nobody waits for this rank there. Its line stays what it was.
  void arrive_silently() { word_ = word_at(++number_); }

  // After arrive(): until the rank at `place` has arrived too. Mismatch if it is in another call.
  Status await(int place) {
    if (lines(place).line[number_ & 1].word.load(std::memory_order_acquire) != word_) [[unlikely]] {
      return wait(place);
    }
    return {};
  }
  // Until everybody has. Nobody goes further than one meet ahead, so that the whole hash can be compared and payloads
  // can be read.
  Status await_all() {
    for (int k = 1, place = place_; k < size(); ++k) {  // beginning behind this one
      if (++place == size()) place = 0;
      CCOM_TRY(await(place));
      if (lines(place).line[number_ & 1].hash != hash_) [[unlikely]]
        return mismatch(place);
    }
    return {};
  }
  // What the rank at `place` said at this meet, which everybody waited for.
  const std::byte* payload_of(int place) const { return lines(place).line[number_ & 1].payload; }
  const std::byte* mail_of(int place) const { return mail_in(place, number_ & 1); }

  // ---- Leaving after an error, for those who let others reach their buffers. A rank is at nobody's buffers before it
  // has found, after the meet that tells where they are, that nobody has_left(); nor after it has arrived at the last
  // meet of the call; nor once it has left itself.
  //
  // Says that this rank will not touch anybody's buffers again; for good. To be called when the communicator's error is
  // known already.
  void say_left();
  // Whether anybody has. After a full fence: either we see it, or who leaves sees that we have arrived.
  bool has_anybody_left() const;
  // Until everybody is out of this rank's buffers, which were shown at meet `opening`; the last meet of the call is
  // `closing`. At most a second: false.
  bool await_leavers(uint32_t opening, uint32_t closing) const;
  uint32_t number() const { return number_; }  // of the last meet that this rank arrived at

  // Ends all sleep on this node. Thread-safe.
  void wake();

  int place() const { return place_; }
  int size() const { return size_; }
  Rank rank_at(int place) const { return config_.ranks[static_cast<size_t>(place)]; }

 private:
  RankLines& lines(int place) const { return lines_[place]; }
  RankLines& own() { return lines_[place_]; }
  std::byte* mail_in(int place, size_t bank) const {
    return region_ + layout_.block_offset(place) + layout_.mail_offset(bank);
  }
  size_t bank() const { return (number_ + 1) & 1; }
  uint64_t word_at(uint32_t number) const { return static_cast<uint64_t>(number) << 32 | (hash_ & 0xffffffff); }
  Status wait(int place);
  void sleep(int place, std::chrono::nanoseconds at_most);
  Status mismatch(int place) const;
  Status late();

  // What every call needs first, so that it shares cache lines.
  RankLines* const lines_;
  const int place_, size_;
  const AsymmetricFence fence_;
  uint32_t number_ = 0;  // of the last meet that this rank arrived at
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
