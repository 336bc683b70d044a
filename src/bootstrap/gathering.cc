// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/gathering.h"

#include <algorithm>

namespace ccom {
namespace {

const char* name_build(const std::string& build) { return build.empty() ? "an older version of ccom" : build.c_str(); }

}  // namespace

Status other_build(const Caller& rank, const std::string& server_who, const std::string& server_build) {
  return error(ErrorKey::BuildsDiffer, "rank %d (%s) runs %s, the process with the rendezvous server (%s) runs %s",
               rank.rank, rank.who.c_str(), name_build(rank.build), server_who.c_str(), name_build(server_build))
      .with_peers({rank.rank})
      .with_cure("install the same version of ccom for all ranks");
}

Status Gathering::fail(Status status) {
  if (failure_.is_ok()) failure_ = std::move(status);
  return failure_;
}

Status Gathering::would_admit(const Caller& caller) const {
  CCOM_TRY(Status(failure_));
  if (caller.build != build_) return other_build(caller, who_, build_);
  if (caller.nranks < 1 || caller.nranks > kMaxRanks || caller.rank < 0 || caller.rank >= caller.nranks) {
    return error(Code::ConfigError, "%s claims to be rank %d of %d", caller.who.c_str(), caller.rank, caller.nranks)
        .with_peers({caller.rank});
  }
  if (nranks_ > 0 && caller.nranks != nranks_) {
    return error(ErrorKey::RanksDisagree, "rank %d (%s) was started with %d ranks, rank %d (%s) with %d", caller.rank,
                 caller.who.c_str(), caller.nranks, first_caller_, members_.at(first_caller_).who.c_str(), nranks_)
        .with_peers({std::min(caller.rank, first_caller_), std::max(caller.rank, first_caller_)})
        .with_cure("start every rank with the same number of ranks, and use a separate unique id for every job");
  }
  const auto member = members_.find(caller.rank);
  if (member != members_.end() && member->second.token != caller.token) {
    return error(ErrorKey::RanksDisagree, "rank %d joined twice: %s and %s", caller.rank, member->second.who.c_str(),
                 caller.who.c_str())
        .with_peers({caller.rank})
        .with_cure("give every process a distinct rank, and use a separate unique id for every job");
  }
  return Status::ok();
}

bool Gathering::is_for_next_rendezvous(const Caller& caller) const {
  const auto member = members_.find(caller.rank);
  return member != members_.end() && member->second.has_left && member->second.token != caller.token;
}

bool Gathering::is_member(const Caller& caller) const {
  const auto member = members_.find(caller.rank);
  return member != members_.end() && !member->second.has_left && member->second.token == caller.token;
}

Status Gathering::join(const Caller& caller) {
  if (Status refusal = would_admit(caller); !refusal.is_ok()) {
    if (!members_.contains(caller.rank)) done_.insert(caller.rank);
    return fail(std::move(refusal));
  }
  if (nranks_ == 0) {
    nranks_ = caller.nranks;
    first_caller_ = caller.rank;
  }
  members_.try_emplace(caller.rank, Member{.token = caller.token, .who = caller.who});
  return Status::ok();
}

Status Gathering::fail_out_of_step(Rank rank, uint64_t round, std::string_view phase) {
  const Rank other = first_in_round_ == rank ? first_caller_ : first_in_round_;
  return fail(error(Code::ConfigError, "rank %d is at step %llu of the start (%.*s), rank %d at step %llu (%s)", rank,
                    static_cast<unsigned long long>(round) + 1, static_cast<int>(phase.size()), phase.data(), other,
                    static_cast<unsigned long long>(round_) + 1, phase_.c_str())
                  .with_peers({std::min(rank, other), std::max(rank, other)})
                  .with_cure("run the same version of ccom, with the same settings, on every rank"));
}

Status Gathering::contribute(const Caller& caller, uint64_t round, std::string_view phase, std::string part) {
  CCOM_TRY(join(caller));
  if (round + 1 == round_) return Status::ok();  // a retry after the answer was lost
  if (round != round_ || (arrived_ > 0 && phase != phase_)) return fail_out_of_step(caller.rank, round, phase);
  Member& member = members_[caller.rank];
  if (member.part.has_value()) return Status::ok();  // a retry
  round_bytes_ += part.size();
  if (part.size() > kMaxPartBytes || round_bytes_ > kMaxExchangeBytes) {
    return fail(error(Code::InternalError,
                      "a step of the start is too large: rank %d contributed %zu bytes, all ranks so far %zu",
                      caller.rank, part.size(), round_bytes_)
                    .with_peers({caller.rank}));
  }
  if (arrived_ == 0) {
    phase_ = phase;
    first_in_round_ = caller.rank;
  }
  member.part = std::move(part);
  if (++arrived_ == nranks_) complete_round();
  // A rank that has left will not return, so nobody waits for it.
  if (arrived_ > 0 && left_ > 0) {
    const auto gone = std::ranges::find_if(members_, [](const auto& entry) { return entry.second.has_left; });
    return fail(error(ErrorKey::LostAtStart, "rank %d (%s) left before the start was over", gone->first,
                      gone->second.who.c_str())
                    .with_peers({gone->first})
                    .with_cure("see that rank's own error"));
  }
  return Status::ok();
}

void Gathering::complete_round() {
  auto parts = std::make_shared<std::vector<std::string>>();
  parts->reserve(members_.size());
  for (auto& [rank, member] : members_) {  // ascending and complete: arrived_ == nranks_
    parts->push_back(std::move(*member.part));
    member.part.reset();
  }
  last_ = std::move(parts);
  ++round_;
  arrived_ = 0;
  round_bytes_ = 0;
}

Gathering::Parts Gathering::result(uint64_t round) const { return round + 1 == round_ ? last_ : nullptr; }

void Gathering::leave(const Caller& caller) {
  const auto found = members_.find(caller.rank);
  if (found == members_.end() || found->second.token != caller.token || found->second.has_left) return;
  found->second.has_left = true;
  ++left_;
  done_.insert(caller.rank);
  if (arrived_ == 0) return;
  (void)fail(
      error(ErrorKey::LostAtStart, "rank %d (%s) left before the start was over", caller.rank, caller.who.c_str())
          .with_peers({caller.rank})
          .with_cure("see that rank's own error"));
}

std::vector<int> Gathering::missing() const {
  std::vector<int> ranks;
  for (Rank rank = 0; rank < nranks_; ++rank) {
    const auto found = members_.find(rank);
    if (found == members_.end() || !found->second.part.has_value()) ranks.push_back(rank);
  }
  return ranks;
}

// Distinguishes ranks that never joined from those that joined and are late: the remedies differ.
std::string Gathering::describe_missing() const {
  if (nranks_ == 0) return "anybody";
  const std::vector<int> ranks = missing();
  std::vector<int> never_joined;
  std::ranges::copy_if(ranks, std::back_inserter(never_joined), [this](int rank) { return !members_.contains(rank); });
  std::string text = name_ranks(ranks) + " of " + std::to_string(nranks_);
  if (never_joined.size() == ranks.size())
    return text + (never_joined.size() == 1 ? " (never joined)" : " (none of them joined)");
  if (never_joined.empty()) return text + " (joined, but did not get as far)";
  return text + " (" + name_ranks(never_joined) + " never joined)";
}

void Gathering::time_out(Rank rank, double waited_seconds) {
  const std::vector<int> ranks = missing();
  for (const int other : ranks) {
    if (!members_.contains(other)) done_.insert(other);  // nobody waits for it any longer
  }
  const std::string waiter = rank >= 0 ? "rank " + std::to_string(rank) : "the rendezvous server";
  (void)fail(error(ErrorKey::NeverJoined, "the start: %s waited %.1f s for %s", waiter.c_str(), waited_seconds,
                   describe_missing().c_str())
                 .with_peers(ranks)
                 .with_cure("check that these ranks run and can reach the rendezvous server; raise initTimeoutMs "
                            "(CCOM_INIT_TIMEOUT_MS) if they only start late"));
}

void Gathering::lose_rank(Rank rank) {
  done_.insert(rank);
  const auto found = members_.find(rank);
  (void)fail(error(ErrorKey::LostAtStart, "rank %d (%s) was lost during the start: its connection ended", rank,
                   found == members_.end() ? "unknown" : found->second.who.c_str())
                 .with_peers({rank}));
}

bool Gathering::has_failed_unknown_to_some() const {
  return !failure_.is_ok() && static_cast<int>(done_.size()) < nranks_;
}

void Gathering::close(std::optional<Status> why) {
  if (!why) why = error(Code::RemoteError, "the process that runs the rendezvous server has shut it down");
  (void)fail(*std::move(why));
}

}  // namespace ccom
