// SPDX-License-Identifier: Apache-2.0
//
// The bookkeeping of one meeting: who has come, with what, for which exchange, and the one error that ends it for all.
// Pure: no threads, sockets or clock. The gRPC server and the in-process rendezvous both drive it, so they agree in
// every rule and every text.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"

namespace ccom {

constexpr size_t kMaxPartBytes = size_t{1} << 20;
// All parts of one exchange together: what one protobuf message can hold, with room to spare.
constexpr size_t kMaxExchangeBytes = size_t{1} << 30;
constexpr int kMaxMeetingRanks = 1 << 20;

// Who speaks. `token` is random per participant: it tells a repeated request from a second process with the same rank.
struct Caller {
  Rank rank = 0;
  int nranks = 0;
  uint64_t token = 0;
  std::string who;  // "process 412 on n7", for texts
};

// Invariants: rounds are numbered from 0 and every rank is in the same one or has just seen it complete; once failure()
// is set it never changes, and every later call returns it, so that all ranks report the same error. Not thread-safe.
class Gathering {
 public:
  using Parts = std::shared_ptr<const std::vector<std::string>>;

  // The first caller's nranks holds for all. A ConfigError if a caller contradicts it or takes a rank that is taken.
  Status join(const Caller& caller);
  // Whether join() would succeed now. An error here does not end the meeting.
  Status would_admit(const Caller& caller) const;
  // The caller took part in this meeting, left, and comes back for another one at the same address: it has to wait
  // until this one is over.
  bool is_for_next_meeting(const Caller& caller) const;
  // Adds one rank's part to `round`. Repeating a request is harmless. Ok: see result().
  Status contribute(const Caller& caller, uint64_t round, std::string_view phase, std::string part);
  // All parts by rank once everybody contributed to `round`; null before. Only the last complete round is kept.
  Parts result(uint64_t round) const;
  // The rank is through. A failure if others need it for a round that is under way.
  void leave(const Caller& caller);

  // Ends the meeting because `rank` waited long enough (or, -1, the meeting point itself did); names who is missing.
  void give_up(Rank rank, double waited_seconds);
  // Ends the meeting because the connection of a waiting rank broke.
  void lose(Rank rank);
  // Ends the meeting because the process that holds it ends.
  void close();

  const Status& failure() const { return failure_; }
  // Everybody came and left.
  bool is_over() const { return nranks_ > 0 && left_ == nranks_; }
  int nranks() const { return nranks_; }

 private:
  struct Member {
    uint64_t token = 0;
    std::string who;
    bool has_left = false;
    std::optional<std::string> part{};
  };

  Status fail(Status status);
  std::vector<int> missing() const;
  std::string describe_missing(const std::vector<int>& ranks) const;
  Status fail_out_of_step(Rank rank, uint64_t round, std::string_view phase);
  void complete_round();

  int nranks_ = 0;
  Rank first_caller_ = 0;
  std::map<Rank, Member> members_;
  int left_ = 0;
  uint64_t round_ = 0;
  std::string phase_;  // of the round under way; meaningful while arrived_ > 0
  Rank first_in_round_ = 0;
  int arrived_ = 0;
  size_t round_bytes_ = 0;
  Parts last_;  // of round_ - 1
  Status failure_;
};

}  // namespace ccom
