// SPDX-License-Identifier: Apache-2.0
//
// The state of one rendezvous: who has joined, with which part, for which exchange, and the one error that ends it for
// all. Pure: no threads, sockets or clock. Both the gRPC server and the in-process rendezvous use it, so rules and
// error texts are the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"

namespace ccom {

constexpr size_t kMaxPartBytes = size_t{1} << 20;
// What a relay says for its ranks at once.
constexpr size_t kMaxRelayedBytes = 8 * kMaxPartBytes;
constexpr size_t kMostRelayedAtOnce = 4 * kMaxPartBytes;  // and one part more
// All parts of one exchange together: must fit into one protobuf message.
constexpr size_t kMaxExchangeBytes = size_t{1} << 30;
constexpr int kMaxRanks = 1 << 20;

// The sender of a request. `token` is random per participant: it distinguishes a retry from a second process with the
// same rank.
struct Caller {
  Rank rank = 0;
  int nranks = 0;
  uint64_t token = 0;
  std::string who;      // "process 412 on n7", for error texts
  std::string build{};  // this_build()
};

// That a rank runs another build than the process with the rendezvous server.
Status other_build(const Caller& rank, const std::string& server_who, const std::string& server_build);

// Invariants: rounds are numbered from 0, and every rank is in the same round or has just completed it; failure() never
// changes once set and is returned by every later call, so that all ranks report the same error. Not thread-safe.
class Gathering {
 public:
  using Parts = std::shared_ptr<const std::vector<std::string>>;

  Gathering() = default;
  // In process `who`, whose build all callers must have.
  Gathering(std::string who, std::string build) : who_(std::move(who)), build_(std::move(build)) {}

  // The first caller's nranks is authoritative. ConfigError if a caller contradicts it, runs another build, or uses a
  // rank that is in use.
  Status join(const Caller& caller);
  // Whether join() would succeed now. An error here does not end the rendezvous.
  Status would_admit(const Caller& caller) const;
  // The caller has left this rendezvous and returns for another one at the same address: it has to wait until this one
  // ends.
  bool is_for_next_rendezvous(const Caller& caller) const;
  // Has joined and not left.
  bool is_member(const Caller& caller) const;
  // Adds one rank's part to `round`. Idempotent. Ok: see result().
  Status contribute(const Caller& caller, uint64_t round, std::string_view phase, std::string part);
  // All parts by rank once every rank has contributed to `round`; null before. Only the last complete round is kept.
  Parts result(uint64_t round) const;
  // The rank has finished. A failure if others need it for the current round.
  void leave(const Caller& caller);

  // The ranks for which the current round waits: "rank 3 of 4 (never joined)".
  std::string describe_missing() const;
  // Ends the rendezvous because `rank` (or, -1, the server itself) has timed out; names the missing ranks.
  void time_out(Rank rank, double waited_seconds);
  // Ends the rendezvous because the connection of a rank was lost.
  void lose_rank(Rank rank);
  // Ends the rendezvous because its process shuts down, or for that reason.
  void close(std::optional<Status> why = {});

  const Status& failure() const { return failure_; }
  // There is a failure, and ranks that have not heard of it may still come.
  bool has_failed_unknown_to_some() const;
  // All ranks have joined and left.
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
  Status fail_out_of_step(Rank rank, uint64_t round, std::string_view phase);
  void complete_round();

  std::string who_;
  std::string build_;
  int nranks_ = 0;
  Rank first_caller_ = 0;
  std::map<Rank, Member> members_;
  int left_ = 0;
  uint64_t round_ = 0;
  std::string phase_;  // of the current round; valid while arrived_ > 0
  Rank first_in_round_ = 0;
  int arrived_ = 0;
  size_t round_bytes_ = 0;
  Parts last_;  // of round_ - 1
  Status failure_;
  std::set<Rank> done_;  // have left or are lost, or have been refused because of the failure
};

}  // namespace ccom
