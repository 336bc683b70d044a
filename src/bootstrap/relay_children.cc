// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/relay_children.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"

namespace ccom {
namespace {

wire::Member member_of(const wire::Request& request) {
  wire::Member member;
  member.set_rank(request.rank());
  member.set_nranks(request.nranks());
  member.set_token(request.token());
  member.set_who(request.who());
  member.set_build(request.build());
  return member;
}

void append(std::vector<wire::Member>& all, google::protobuf::RepeatedPtrField<wire::Member>& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

}  // namespace

void RelayChildren::listen(const UniqueId& id, const PortRange& ports) {
  Result<std::unique_ptr<RelayServer>> started = RelayServer::start(address_towards(id.address), ports, id.secret);
  if (started) {
    server_ = *std::move(started);
  } else {
    log(LogLevel::Debug, "no relays of other hosts: %s", started.error().message().c_str());
  }
}

bool RelayChildren::step() {
  if (server_ == nullptr) return false;
  std::vector<RelayRequest> arrived = server_->take();
  FinishedCalls finished;
  for (RelayRequest& each : arrived) each.call == nullptr ? cancel(each.number, finished) : hear(each, finished);
  return !arrived.empty();
}

void RelayChildren::hear(RelayRequest& arrived, FinishedCalls& finished) {
  wire::Request& request = arrived.request;
  Child& child = children_[request.token()];
  child.self = member_of(request);
  const auto answer = [&] { finished.add(arrived.call, failure_.is_ok() ? nothing_ : encode(failure_, self_)); };
  switch (request.step_case()) {
    case wire::Request::kJoin: {
      if (!failure_.is_ok()) return answer();
      joins_.push_back({request.token(), arrived.call, {}});
      return append(joins_.back().members, *request.mutable_also());
    }
    case wire::Request::kPresence:
      let_go(child.presence, nothing_, finished);
      if (!failure_.is_ok() || child.has_left) return answer();
      child.presence = {arrived.number, arrived.call};
      return arrived.call->acknowledge();
    case wire::Request::kContribution: hear_parts(request); return answer();
    case wire::Request::kAwait: return hear_await(child, arrived, finished);
    case wire::Request::kLost: append(losses_, *request.mutable_also()); return answer();
    case wire::Request::kLeave: hear_leave(child, request, finished); return finished.add(arrived.call, nothing_);
    case wire::Request::STEP_NOT_SET: return answer();  // it asks why its presence has ended
  }
}

// In few requests, of a size that the server takes.
void RelayChildren::hear_parts(wire::Request& request) {
  const wire::Contribution& step = request.contribution();
  size_t bytes = 0;
  for (const wire::Member& member : request.also()) bytes += member.part().size();
  const bool fits = !parts_.empty() && parts_.back().round == step.round() && parts_.back().phase == step.phase() &&
                    parts_.back().bytes + bytes <= kMostRelayedAtOnce;
  if (!fits) parts_.push_back({.round = step.round(), .phase = step.phase(), .members = {}});
  append(parts_.back().members, *request.mutable_also());
  parts_.back().bytes += bytes;
}

// A retry replaces the request whose connection was lost.
void RelayChildren::hear_await(Child& child, const RelayRequest& arrived, FinishedCalls& finished) {
  const wire::Await& await = arrived.request.await();
  let_go(child.await, nothing_, finished);
  if (!failure_.is_ok()) return finished.add(arrived.call, encode(failure_, self_));
  child.round = await.round();
  if (last_round_ == child.round + 1) {
    child.answered = last_round_;
    return finished.add(arrived.call, last_answer_);
  }
  child.limit = Deadline::after_ms(await.timeout_ms());
  child.await = {arrived.number, arrived.call};
}

void RelayChildren::hear_leave(Child& child, wire::Request& request, FinishedCalls& finished) {
  for (const wire::Member& member : request.also()) {
    std::erase_if(child.members, [&](const wire::Member& each) { return each.token() == member.token(); });
    if (member.token() != request.token()) continue;
    child.has_left = true;
    let_go(child.presence, nothing_, finished);
  }
  append(leaves_, *request.mutable_also());
}

// The connection is lost: so is the relay's own rank, or, if that had left, those that spoke through it.
void RelayChildren::cancel(uint64_t number, FinishedCalls& finished) {
  for (auto& [token, child] : children_) {
    const bool is_its = child.presence.number == number || child.await.number == number;
    if (!is_its) continue;
    if (child.presence.number == number) let_go(child.presence, nothing_, finished);
    if (child.await.number == number) let_go(child.await, nothing_, finished);
    if (!std::exchange(child.has_left, true)) child.members = {child.self};
    std::ranges::move(std::exchange(child.members, {}), std::back_inserter(losses_));
  }
}

void RelayChildren::let_go(Held& held, const AnswerText& answer, FinishedCalls& finished) {
  if (held.call != nullptr) finished.add(held.call, answer);
  held = {};
}

std::map<uint64_t, Deadline> RelayChildren::awaited() const {
  std::map<uint64_t, Deadline> rounds;
  for (const auto& [token, child] : children_) {
    if (child.await.call == nullptr) continue;
    Deadline& limit = rounds.try_emplace(child.round, child.limit).first->second;
    limit = limit.earlier(child.limit);
  }
  return rounds;
}

void RelayChildren::answer(const Joining& joining, const Status& status) {
  FinishedCalls finished;
  finished.add(joining.call, encode(status, self_));
  if (!status.is_ok()) return;
  std::ranges::copy(joining.members, std::back_inserter(children_[joining.relay].members));
}

void RelayChildren::deliver(uint64_t round, wire::Answer& answer) {
  if (server_ == nullptr) return;
  FinishedCalls finished;
  last_round_ = round + 1;
  last_answer_ = encode(answer, self_);
  for (auto& [token, child] : children_) {
    if (child.await.call == nullptr || child.round != round) continue;
    child.answered = last_round_;
    let_go(child.await, last_answer_, finished);
  }
}

void RelayChildren::fail(const Status& status) {
  if (failure_.is_ok()) failure_ = status;
  FinishedCalls finished;
  const AnswerText answer = encode(failure_, self_);
  for (const Joining& joining : take_joins()) finished.add(joining.call, answer);
  for (auto& [token, child] : children_) {
    let_go(child.await, answer, finished);
    let_go(child.presence, nothing_, finished);
  }
}

bool RelayChildren::may_end() const {
  return std::ranges::all_of(children_, [](const auto& entry) { return entry.second.members.empty(); });
}

std::vector<wire::Member> RelayChildren::present(uint64_t answered) const {
  std::vector<wire::Member> all;
  for (const auto& [token, child] : children_)
    if (child.answered >= answered) std::ranges::copy(child.members, std::back_inserter(all));
  return all;
}

// What nobody has answered until now: its relay is late, and hears that this one has ended.
RelayChildren::~RelayChildren() {
  if (server_ == nullptr) return;
  FinishedCalls finished;
  for (const Joining& joining : joins_) finished.add(joining.call, Refusal::RelayHasEnded);
  for (auto& [token, child] : children_) {
    if (child.await.call != nullptr) finished.add(child.await.call, Refusal::RelayHasEnded);
    if (child.presence.call != nullptr) finished.add(child.presence.call, nothing_);
  }
  for (const RelayRequest& each : server_->end())
    if (each.call != nullptr) finished.add(each.call, Refusal::RelayHasEnded);
}

}  // namespace ccom
