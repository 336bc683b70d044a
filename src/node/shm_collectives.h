// SPDX-License-Identifier: Apache-2.0
//
// Collectives among the ranks of one host, through memory that they share: the real world behind node plans. It runs
// what it is told to run; what is best for a call is the planner's to say.
//
// Two ways:
// - Small calls: everybody shows its input in its flag line or its mail and reads everybody else's. One barrier. One
//   function (meet) instead of an interpreter; it does what the node plans one_shot and direct say when nobody is
//   reached, with lines and mails as the stage. Where the root alone shows something, or alone reads (go_ahead), ranks
//   wait for those whose input they read, and may be 127 such calls ahead of the others, or 63 of more than 48 bytes
//   (two ranks: 31), or as many of more than 1 KiB as fit into a ring.
// - All others run their plan (TiledCall). It begins with a barrier at which ranks say where their buffers are. Buffers
//   within reach are used where they lie; what cannot be reached goes through staging memory, in tiles that stay in the
//   cache.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/collective.h"
#include "node/part_counts.h"
#include "node/small_call.h"
#include "node/tiled_call.h"

namespace ccom {

// What must be known before the first call.
struct NodeConfig {
  FlagBarrier::Config barrier;
  NodeLayout layout;
  SharedSegment* segment = nullptr;  // outlives the collectives, as the monitor does
  size_t region_offset = 0;
  std::vector<LocalPeer> peers;
  Arena* arena = nullptr;  // this process's
  ReachMap::Means means;
  // By collective: up to how many bytes that a rank shows (shown_bytes()) calls are small. At most the layout's
  // small_bytes(). Equal on all ranks. A small call does not look at its task's choice.
  std::array<size_t, kCollectiveTraits.size()> small_bytes{};
  // Of two ranks, each claims the lines of the other's mail that it has read (lines.h).
  bool claims_mail = false;
  PreparedTask::Prove prove;  // may be empty, as may this:
  CallChoices::Expect expect;
  bool tries_ways = true;
  // The error of a v-form in which ranks gave different counts. claims: as PartCounts::claims() says.
  std::function<Status(const CallWords& words, std::span<const uint64_t> claims)> differ;
};

// An alltoall whose parts differ in length, of one rank. Buffers and lists are borrowed.
struct PartExchange {
  PartLists parts;
  std::span<const size_t> received_at;  // where parts begin in the output
  uint64_t claim = 0;                   // those of all ranks add up to 0 if they agree
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  size_t element_bytes = 1;
};

// Of a rank's memory that others read in a plain collective, the same on all ranks.
inline size_t shown_bytes(Collective collective, int ranks, size_t unit_bytes) {
  return input_units(collective, ranks, true) * unit_bytes;
}

// Belongs to one thread at a time, but for wake(). An error of run() is final.
class ShmCollectives {
 public:
  // Makes the cause the communicator's error and returns the one in force. Throws nothing.
  using Fail = std::function<Status(const Status& cause)>;
  ShmCollectives(NodeConfig config, Monitor& monitor, FlagBarrier::Describe describe, Fail fail);
  ShmCollectives(const ShmCollectives&) = delete;
  ShmCollectives& operator=(const ShmCollectives&) = delete;
  // Takes memory for this rank's lines; by every rank before any of them calls run().
  Status open();

  // Blocking. Every rank of the host makes the call, with equal words.
  //
  // An error is made the communicator's (fail: reports it and returns the one in force) before the call returns, and
  // nobody touches this rank's buffers after that. Where a peer is stopped for more than a second in the middle of a
  // copy, the output is taken out of its reach (Arena::detach): later calls on it copy.
  Status run(const NodeCall& call, const CallWords& words, std::chrono::milliseconds timeout);
  // A call as run() makes it where it fits into lines and mail; nothing if it does not. `root`: among the host's ranks.
  // The operator is the caller's to fill in.
  std::optional<SmallCall> small_call(Collective collective, Rank root, DataType type, size_t count) const;
  // The same as run() of that call. hash: hash_of(words).
  Status run_small(const SmallCall& call, const SmallBuffers& buffers, const CallWords& words, uint64_t hash,
                   std::chrono::milliseconds timeout);
  // Calls whose words have only a hash of the counts of v-forms: what this rank says of them in the call that it makes
  // next, for the error of ranks whose words differ.
  void show_counts(const PartLists& lists) { counts_.show(barrier_.number() + 1, lists); }
  void show_equal_counts(size_t count) { counts_.show_equal(barrier_.number() + 1, count); }
  // An alltoallv, if all ranks' parts fit into their mail. Otherwise nothing has been moved, but everybody agrees on
  // the counts; of_exchange() is what others have said. has_met: this call has begun as an equal one.
  struct Exchanged {
    size_t longest = 0;      // the elements of the longest part; 0: all has been done
    bool is_mapped = false;  // every rank whose parts do not fit has them where others can read them
  };
  Result<Exchanged> exchange_small(const PartExchange& exchange, CallWords words, std::chrono::milliseconds timeout,
                                   bool has_met);
  // A rank whose parts are all equally long may begin an alltoallv as an alltoall with this word instead of its count.
  // Where other ranks' parts are not so long that returns an error which is none: take_unlike_parts() is true then,
  // once, nothing has been moved, and exchange_small() is to follow. All ranks find it so, also those that called that
  // first.
  static constexpr uint64_t word_of_equal(size_t count) { return count + 2; }
  // Instead of a count, too: ranks that say how long their parts are, and the same after some took theirs for equal.
  static constexpr uint64_t kSaysParts = 0, kSaysPartsAfterAll = 1;
  bool has_unlike_parts() const { return are_parts_unlike_; }
  bool take_unlike_parts() { return std::exchange(are_parts_unlike_, false); }
  PartLists of_exchange(Rank local_rank) const { return counts_.of(local_rank, barrier_.number()); }
  void wake() {
    barrier_.wake();
    ahead_.wake();
  }

  // NodeConfig::small_bytes.
  size_t small_bytes(Collective collective) const { return config_.small_bytes[static_cast<size_t>(collective)]; }
  bool is_small(Collective collective, size_t unit_bytes) const {
    return shown_bytes(collective, size(), unit_bytes) <= small_bytes(collective);
  }
  const ReachMap& reach_map() const { return reach_map_; }
  const CallChoices& choices() const { return choices_; }
  // In which way the last call ran, which was of that task; "": it was a small one, or has not begun.
  std::string_view last_way(PreparedTask& task) const;
  // Taken by this rank so far.
  uint64_t memory_bytes() const { return lines_bytes_ + staging_.memory_bytes(); }

 private:
  Status meet(const SmallCall& call, const SmallBuffers& buffers);
  Status go_ahead(const SmallCall& call, const SmallBuffers& buffers);
  template <uint32_t banks>
  void show(BasicFlagBarrier<banks>& barrier, const SmallCall& call, const std::byte* input);
  template <uint32_t banks>
  void combine_shown(const BasicFlagBarrier<banks>& barrier, const SmallCall& call, const SmallBuffers& buffers);
  template <uint32_t banks>
  void reduce_shown(const BasicFlagBarrier<banks>& barrier, const SmallCall& call, const SmallBuffers& buffers,
                    size_t offset);
  template <uint32_t banks>
  void gather_shown(const BasicFlagBarrier<banks>& barrier, const SmallCall& call, const SmallBuffers& buffers,
                    size_t offset);
  template <uint32_t banks>
  void take_shown(const BasicFlagBarrier<banks>& barrier, const SmallCall& call, const SmallBuffers& buffers,
                  size_t offset);
  template <uint32_t banks>
  void claim_read(const BasicFlagBarrier<banks>& barrier, const SmallCall& call);
  void choose_way(const NodeCall& call, const CallWords& words);
  Rank self() const { return barrier_.rank_of(barrier_.local_rank()); }
  Status give_up(const Status& cause);
  Status find_counts(Status mismatch, const CallWords& words);
  Result<Exchanged> exchange_mail(const PartExchange& exchange, const CallWords& words);
  void end_exposure(const TiledCall::Exposure& exposure);
  int size() const { return barrier_.size(); }

  const NodeConfig config_;
  Monitor& monitor_;
  FlagBarrier barrier_;
  AheadBarrier ahead_;
  PartCounts counts_;
  const Fail fail_;
  Reducers reducers_;
  const ReachMap reach_map_;
  Staging staging_;
  uint64_t lines_bytes_ = 0;
  bool was_small_ = false;         // the last call
  bool are_parts_unlike_ = false;  // in this call: take_unlike_parts()

  // Memory of tiled calls, kept for the next one.
  BoundCall unkept_;           // of the last one for which the caller keeps none
  BoundCall* last_ = nullptr;  // of the last one; null: it was small, or did not begin
  CallChoices choices_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::vector<std::byte> read_;
  const TiledCall::Room room_;
};

}  // namespace ccom
