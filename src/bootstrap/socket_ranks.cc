// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/socket_ranks.h"

#include <algorithm>
#include <utility>

namespace ccom {

bool SocketRanks::listen() {
  if (!ranks_.is_listening()) ranks_.listen_at(place_.listen());
  return ranks_.is_listening();
}

void SocketRanks::hear(Gathering& gathering, ServerProcess& server) {
  for (RelayedRank& rank : ranks_.all()) hear_from(rank, gathering, server);
}

void SocketRanks::hear_from(RelayedRank& rank, Gathering& gathering, ServerProcess& server) {
  const Caller caller = caller_of(rank.self);
  if (rank.asks_whether) RelayRanks::answer(rank, RelayedText(*encode(gathering.would_admit(caller), server)));
  if (rank.asks_to_join) {
    // It tries again until this rendezvous has ended.
    if (gathering.is_for_next_rendezvous(caller)) {
      rank.asks_to_join = false;
      return rank.line.close();
    }
    const Status joined = join_all(gathering, {caller}, server);
    rank.has_joined = joined.is_ok();
    RelayRanks::answer(rank, RelayedText(*encode(joined, server)));
  }
  if (std::exchange(rank.has_part, false)) {
    const Status said = gathering.contribute(caller, rank.round, rank.phase, std::move(*rank.self.mutable_part()));
    const bool is_its_own = !said.is_ok() && gathering.failure().is_ok();  // else all are told
    if (is_its_own) RelayRanks::answer(rank, RelayedText(*encode(said, server)));
  }
  // It has come after a failure and knows of it: it is not waited for any longer.
  if (rank.is_told && !rank.has_joined) (void)gathering.join(caller);
  if (rank.has_joined && rank.has_left) {
    gathering.leave(caller);
  } else if (rank.is_lost()) {
    gathering.lose_rank(caller.rank);
  } else {
    return;
  }
  rank.has_joined = rank.waits = false;
}

void SocketRanks::settle(const Gathering& gathering, const ServerProcess& server) {
  std::map<uint64_t, RelayedText> answers;  // by round
  for (RelayedRank& rank : ranks_.all()) {
    const Gathering::Parts parts = rank.waits ? gathering.result(rank.round) : nullptr;
    if (parts == nullptr) continue;
    auto answer = answers.find(rank.round);
    if (answer == answers.end()) answer = answers.emplace(rank.round, RelayedText(*encode(*parts, server))).first;
    rank.answered = rank.round + 1;
    RelayRanks::answer(rank, answer->second);
  }
  if (!gathering.failure().is_ok()) ranks_.fail(gathering.failure());
}

bool SocketRanks::are_waiting() const {
  return std::ranges::any_of(ranks_.all(), [](const RelayedRank& rank) { return rank.waits; });
}

Deadline SocketRanks::next_limit(Deadline at_most) const {
  Deadline next = at_most;
  for (const RelayedRank& rank : ranks_.all())
    if (rank.waits) next = next.earlier(rank.limit);
  return next;
}

const RelayedRank* SocketRanks::find_late() const {
  const auto late =
      std::ranges::find_if(ranks_.all(), [](const RelayedRank& rank) { return rank.waits && rank.limit.passed(); });
  return late == ranks_.all().end() ? nullptr : &*late;
}

}  // namespace ccom
