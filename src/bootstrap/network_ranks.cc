// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/network_ranks.h"

#include <algorithm>
#include <new>
#include <utility>

#include "bootstrap/rendezvous.pb.h"

namespace ccom {

void NetworkRanks::hear(wire::Request& request, PendingCall* call, FinishedCalls& finished) {
  const Caller caller = caller_of(request);
  const std::vector<Caller> callers = callers_of(request);
  switch (request.step_case()) {
    case wire::Request::kJoin: {
      if (are_for_next_rendezvous(gathering_, callers)) return finished.add(call, Refusal::NotYet);
      if (request.also().empty() && is_absent(caller)) return finished.add(call, Refusal::Absent);
      if (const std::string relay = relays_.way_of(caller, request.join().relay_at()); !relay.empty())
        return finished.add(call, encode_way(relay, server_));
      return finished.add(call, encode(join_all(gathering_, callers, server_), server_));
    }
    case wire::Request::kPresence:
      if (gathering_.is_for_next_rendezvous(caller)) return finished.add(call, Refusal::NotYet);
      return present_.begin(caller, call, finished);
    case wire::Request::kLeave: leave_all(callers, finished); return finished.add(call, encode(Status::ok(), server_));
    case wire::Request::kLost: lose_all(gathering_, callers); return finished.add(call, nothing_);
    case wire::Request::kContribution: {
      const wire::Contribution& step = request.contribution();
      const Status status = contribute_all(gathering_, request);
      if (!status.is_ok() || step.is_relayed()) return finished.add(call, encode(status, server_));
      return add_waiter(caller.rank, step.round(), step.timeout_ms(), call, finished);
    }
    case wire::Request::kAwait:
      return add_waiter(caller.rank, request.await().round(), request.await().timeout_ms(), call, finished);
    case wire::Request::STEP_NOT_SET:  // a probe
      finished.add(call, encode(gathering_.would_admit(caller), server_));
      return;
  }
}

void NetworkRanks::leave_all(const std::vector<Caller>& callers, FinishedCalls& finished) {
  for (const Caller& caller : callers) {
    present_.end(caller, finished);
    gathering_.leave(caller);
  }
}

// It would be admitted if its presence had not broken meanwhile.
bool NetworkRanks::is_absent(const Caller& caller) const {
  return !present_.has(caller) && gathering_.would_admit(caller).is_ok();
}

// A retry replaces the request whose connection was lost.
void NetworkRanks::add_waiter(Rank rank, uint64_t round, int64_t timeout_ms, PendingCall* call,
                              FinishedCalls& finished) {
  const Waiter waiter{.call = call, .round = round, .timeout = Deadline::after_ms(timeout_ms), .since = Clock::now()};
  const auto [place, is_new] = waiting_.try_emplace(rank, waiter);
  if (is_new) return;
  finished.add(place->second.call, nothing_);
  place->second = waiter;
}

// All get the same bytes, encoded once.
void NetworkRanks::settle(FinishedCalls& finished) {
  std::map<uint64_t, AnswerText> answers;
  const bool has_failed = !gathering_.failure().is_ok();
  for (auto place = waiting_.begin(); place != waiting_.end();) {
    const Waiter& waiter = place->second;
    const Gathering::Parts parts = gathering_.result(waiter.round);
    if (parts == nullptr && !has_failed) {
      ++place;
      continue;
    }
    const auto [answer, is_new] = answers.try_emplace(waiter.round);
    if (is_new) answer->second = parts != nullptr ? encode(*parts, server_) : encode(gathering_.failure(), server_);
    finished.add(waiter.call, answer->second);
    place = waiting_.erase(place);
  }
  if (has_failed) present_.end_all(finished);
}

// A rank that was present and has not joined is not missed: it may try again.
bool NetworkRanks::forget(const PendingCall* call, std::optional<Rank>& missed) {
  const auto is_it = [call](const auto& entry) { return entry.second.call == call; };
  if (const auto found = std::ranges::find_if(waiting_, is_it); found != waiting_.end()) {
    missed = found->first;
    waiting_.erase(found);
    return true;
  }
  const std::optional<Caller> caller = present_.forget(call);
  if (caller && gathering_.is_member(*caller)) missed = caller->rank;
  return caller.has_value();
}

void NetworkRanks::cancel(PendingCall* call, FinishedCalls& finished) {
  std::optional<Rank> missed;
  if (!forget(call, missed)) return;
  finished.add(call, nothing_);
  if (!missed) return;
  try {
    gathering_.lose_rank(*missed);
    settle(finished);
  } catch (const std::bad_alloc&) {  // those that wait are told at their deadline
  }
}

void NetworkRanks::drop(PendingCall* call, FinishedCalls& finished) {
  std::optional<Rank> missed;
  forget(call, missed);
  finished.add(call, Refusal::NoMemory);
}

void NetworkRanks::refuse_all(FinishedCalls& finished) {
  for (const auto& [rank, waiter] : waiting_) finished.add(waiter.call, Refusal::NoMemory);
  waiting_.clear();
  present_.refuse_all(Refusal::NoMemory, finished);
}

Deadline NetworkRanks::next_limit(Deadline at_most) const {
  Deadline next = at_most;
  for (const auto& [rank, waiter] : waiting_) next = next.earlier(waiter.timeout);
  return next;
}

std::optional<NetworkRanks::Late> NetworkRanks::find_late() const {
  const auto late = std::ranges::find_if(waiting_, [](const auto& entry) { return entry.second.timeout.passed(); });
  return late == waiting_.end() ? std::nullopt : std::optional(Late{late->first, late->second.since});
}

}  // namespace ccom
