// SPDX-License-Identifier: Apache-2.0
//
// The ranks that a relay speaks for: their connections, what they have said and have to be told.
#pragma once

#include <list>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "bootstrap/relay_line.h"
#include "bootstrap/rendezvous.pb.h"

namespace ccom {

struct RelayedRank {
  explicit RelayedRank(RelayLine opened) : line(std::move(opened)) {}
  RelayLine line;
  wire::Member self;          // with the part that is to be passed on, if any
  bool asks_whether = false;  // it would be admitted
  bool asks_to_join = false, has_joined = false, has_left = false;
  bool is_told = false;  // of the failure
  // Of its last contribution: not passed on yet; not answered yet.
  bool has_part = false, waits = false;
  uint64_t round = 0;
  Clock::time_point since{};  // it waits
  uint64_t answered = 0;      // rounds
  std::string phase;
  Deadline limit = Deadline::after_ms(0);

  bool is_present() const { return has_joined && !has_left; }
  bool is_lost() const { return is_present() && line.has_ended(); }
};

std::vector<wire::Member> members_of(const std::vector<RelayedRank*>& ranks);

// Belongs to the relay's thread.
class RelayRanks {
 public:
  // Connections arrive at `listener`.
  RelayRanks(RelayPlace place, RelaySocket listener) : place_(std::move(place)), listener_(std::move(listener)) {}

  // Reads and writes what can be. Whether anything has come; waits for it that long, or until `wake` is readable.
  bool step(std::chrono::milliseconds longest, int wake = -1);
  std::list<RelayedRank>& all() { return ranks_; }
  const std::list<RelayedRank>& all() const { return ranks_; }
  std::vector<RelayedRank*> select(bool (*picks)(const RelayedRank&));
  const RelayedRank* find(Rank rank) const;  // null: it has not come
  // Of those that ask to join, second processes of a rank, and those of a later start at this address: what that means
  // is up to the server.
  void close_repeated();
  // Answers its request. text: of an Answer.
  static void answer(RelayedRank& rank, const RelayedText& text);
  // The rendezvous has failed: everybody is told once, also who does not ask now; it is the answer to what it asks
  // next.
  void fail(const Status& status);
  const Status& failure() const { return failure_; }
  // Nobody needs the relay any longer, if its own rank, which has left, does not.
  bool may_end(Rank own) const;
  void stop_listening() { listener_.close(); }
  void listen_at(RelaySocket listener) { listener_ = std::move(listener); }
  bool is_listening() const { return listener_.is_open(); }

 private:
  void hear(RelayedRank& rank, const std::string& text);
  void tell(RelayedRank& rank);

  const RelayPlace place_;
  RelaySocket listener_;
  std::list<RelayedRank> ranks_;
  std::set<Rank> seen_;  // by close_repeated()
  Status failure_;
};

}  // namespace ccom
