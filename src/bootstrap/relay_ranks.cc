// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/relay_ranks.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "bootstrap/answers.h"

namespace ccom {

std::vector<wire::Member> members_of(const std::vector<RelayedRank*>& ranks) {
  std::vector<wire::Member> members;
  members.reserve(ranks.size());
  for (const RelayedRank* const rank : ranks) members.push_back(rank->self);
  return members;
}

bool RelayRanks::step(std::chrono::milliseconds longest, int wake) {
  std::vector<pollfd> polled{{listener_.fd(), POLLIN, 0}, {wake, POLLIN, 0}};
  for (const RelayedRank& rank : ranks_)
    polled.push_back({rank.line.fd(), static_cast<short>(POLLIN | (rank.line.has_unsent() ? POLLOUT : 0)), 0});
  bool has_come = ::poll(polled.data(), polled.size(), static_cast<int>(longest.count())) > 0;
  auto events = polled.begin() + 2;
  for (RelayedRank& rank : ranks_) {
    if ((events++)->revents == 0) continue;
    rank.line.step();
    while (const std::optional<std::string> text = rank.line.receive()) {
      has_come = true;
      hear(rank, *text);
    }
  }
  const auto accept = [this] { return ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); };
  for (Descriptor socket = Descriptor::from(accept); socket.is_open(); socket = Descriptor::from(accept))
    ranks_.emplace_back(RelayLine::accepted(std::move(socket), place_));
  std::erase_if(ranks_, [](const RelayedRank& rank) { return rank.line.has_ended() && !rank.has_joined; });
  return has_come;
}

void RelayRanks::hear(RelayedRank& rank, const std::string& text) {
  wire::Request request;
  if (!request.ParseFromString(text) || request.rank() != rank.line.peer()) return rank.line.close();
  switch (request.step_case()) {
    case wire::Request::kJoin:
    case wire::Request::STEP_NOT_SET:
      rank.self.set_rank(request.rank());
      rank.self.set_nranks(request.nranks());
      rank.self.set_token(request.token());
      rank.self.set_who(request.who());
      rank.self.set_build(request.build());
      (request.has_join() ? rank.asks_to_join : rank.asks_whether) = true;
      break;
    case wire::Request::kContribution: {
      const wire::Contribution& step = request.contribution();
      rank.self.set_part(step.part());
      rank.round = step.round();
      rank.phase = step.phase();
      rank.limit = Deadline::after_ms(step.timeout_ms());
      rank.since = Clock::now();
      rank.has_part = rank.waits = true;
      break;
    }
    case wire::Request::kLeave: rank.has_left = true; return;
    default: break;
  }
  if (!failure_.is_ok()) tell(rank);
}

void RelayRanks::close_repeated() {
  for (RelayedRank& rank : ranks_) {
    if (!rank.asks_to_join || seen_.insert(rank.self.rank()).second) continue;
    rank.asks_to_join = false;
    rank.line.close();
  }
}

void RelayRanks::answer(RelayedRank& rank, const RelayedText& text) {
  rank.asks_whether = rank.asks_to_join = rank.waits = rank.has_part = false;
  rank.line.send(text);
}

void RelayRanks::tell(RelayedRank& rank) {
  if (!std::exchange(rank.is_told, true)) answer(rank, RelayedText(serialized(failure_)));
}

void RelayRanks::fail(const Status& status) {
  if (failure_.is_ok()) failure_ = status;
  for (RelayedRank& rank : ranks_)
    if (rank.is_present() || rank.asks_to_join) tell(rank);
}

std::vector<RelayedRank*> RelayRanks::select(bool (*picks)(const RelayedRank&)) {
  std::vector<RelayedRank*> picked;
  for (RelayedRank& rank : ranks_)
    if (picks(rank)) picked.push_back(&rank);
  return picked;
}

const RelayedRank* RelayRanks::find(Rank rank) const {
  const auto found = std::ranges::find(ranks_, rank, [](const RelayedRank& each) { return each.self.rank(); });
  return found == ranks_.end() ? nullptr : &*found;
}

// Who has heard as much as its own rank, and nothing of a failure, asks no more.
bool RelayRanks::may_end(Rank own) const {
  const RelayedRank* const self = find(own);
  const uint64_t level = self == nullptr ? 0 : self->answered;
  return std::ranges::all_of(ranks_, [&](const RelayedRank& rank) {
    if (rank.line.has_ended() || (!rank.is_present() && !rank.asks_to_join)) return true;
    return failure_.is_ok() && !rank.waits && rank.answered >= level && !rank.line.has_unsent();
  });
}

}  // namespace ccom
