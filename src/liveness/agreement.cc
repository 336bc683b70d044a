// SPDX-License-Identifier: Apache-2.0
#include "liveness/agreement.h"

#include <algorithm>

#include "base/assert.h"

namespace ccom {

using Kind = AgreementMessage::Kind;

void AgreementState::begin(uint64_t number, const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                           Outputs& out) {
  CCOM_ASSERT(number > current_);
  current_ = number;
  // Others are in this round or the one before: to come here they need this rank there, or leave it out.
  rounds_.erase(rounds_.begin(), rounds_.lower_bound(number - 1));
  has_missed_ |= std::ranges::count(excluded, self_) > 0;
  if (has_missed_) return;
  Round& round = round_of(number);
  has_missed_ = round.is_missed;
  round.has_come = true;
  round.terms = terms;
  for (const Rank rank : excluded) round.excluded[static_cast<size_t>(rank)] = true;
  advance(number, round, out);
}

AgreementState::Round& AgreementState::round_of(uint64_t number) {
  Round& round = rounds_[number];
  round.excluded.resize(views_.size());
  return round;
}

void AgreementState::end_wait(Outputs& out) {
  round_of(current_).is_over = true;
  advance(current_, round_of(current_), out);
}

void AgreementState::give_up(Outputs& out) {
  round_of(current_).has_given_up = true;
  end_wait(out);
}

void AgreementState::raise(Round& round, int64_t ballot) {
  if (ballot <= round.promised) return;
  round.promised = ballot;
  round.reports.clear();
  round.accepted_by.reset();
}

// Whether its lists are by rank. They are, of a rank of the same communicator.
bool AgreementState::is_for_all(const AgreementMessage& message) const {
  const bool has_views = message.kind == Kind::Report || message.kind == Kind::Views;
  const bool has_value =
      message.kind == Kind::Proposal || message.kind == Kind::Decision || message.accepted_ballot >= 0;
  return message.views.size() == (has_views ? views_.size() : 0) &&
         message.value.parts.size() == (has_value ? views_.size() : 0) && message.value.different < std::ssize(views_);
}

void AgreementState::receive(Rank from, const AgreementMessage& message, Outputs& out) {
  if (!is_for_all(message)) return;
  PeerView& view = views_[static_cast<size_t>(from)];
  if (view == PeerView::Dead) view = PeerView::Fine;  // it was taken for that
  is_heard_[static_cast<size_t>(from)] = true;
  hear(message.views, out);
  if (message.kind == Kind::Views) return;
  if (message.round + 1 < current_) {
    out.push_back({from, {.kind = Kind::Missed, .round = message.round}});
    return;
  }
  Round& round = round_of(message.round);
  const bool is_outcome = message.kind == Kind::Decision || message.kind == Kind::Missed;
  if (is_closed(round)) {
    if (!is_outcome && message.kind != Kind::Accepted) out.push_back({from, outcome_of(message.round, round)});
    return;
  }
  if (is_outcome) return close(message, round, out);
  raise(round, message.ballot);
  answer(from, message, round, out);
  advance(message.round, round, out);
}

void AgreementState::answer(Rank from, const AgreementMessage& message, Round& round, Outputs& out) {
  const bool is_current = message.ballot == round.promised;
  if (message.kind == Kind::Report && is_current && leads(round)) {
    round.reports[from] = message;
    if (round.accepted_by) out.push_back({from, proposal_of(message.round, round)});
  }
  if (message.kind == Kind::Report && !is_current)
    out.push_back({from, {.kind = Kind::Prepare, .round = message.round, .ballot = round.promised}});
  // To the coordinator of a lower ballot this says that there is a higher one.
  if (message.kind == Kind::Prepare) out.push_back({from, report_of(message.round, round)});
  if (message.kind == Kind::Proposal && !is_current) out.push_back({from, report_of(message.round, round)});
  if (message.kind == Kind::Proposal && is_current) {
    round.accepted_ballot = message.ballot;
    round.accepted = message.value;
    out.push_back({from, {.kind = Kind::Accepted, .round = message.round, .ballot = message.ballot}});
  }
  if (message.kind == Kind::Accepted && is_current && round.accepted_by)
    (*round.accepted_by)[static_cast<size_t>(from)] = true;
}

// A living rank that knows of a death tells its neighbours once. Of a neighbour's death its own connection tells.
void AgreementState::hear(const std::vector<PeerView>& views, Outputs& out) {
  for (Rank rank = 0; rank < std::ssize(views); ++rank)
    if (rank != self_ && !is_heard_[static_cast<size_t>(rank)] && views[static_cast<size_t>(rank)] == PeerView::Dead)
      see(rank, PeerView::Dead, out);
}

void AgreementState::see(Rank rank, PeerView view, Outputs& out) {
  PeerView& known = views_[static_cast<size_t>(rank)];
  if (rank == self_ || known == view || known >= PeerView::Left) return;
  known = view;
  is_heard_[static_cast<size_t>(rank)] = is_heard_[static_cast<size_t>(rank)] && view == PeerView::Fine;
  if (view == PeerView::Dead) out.push_back({kAll, {.kind = Kind::Views, .views = views_}});
  for (auto& [number, round] : rounds_) advance(number, round, out);
}

void AgreementState::see_left(Rank rank, uint64_t rounds, Outputs& out) {
  if (views_[static_cast<size_t>(rank)] == PeerView::Left) return;
  rounds_left_[static_cast<size_t>(rank)] = rounds;
  see(rank, PeerView::Left, out);
}

void AgreementState::attach(Rank rank, Outputs& out) {
  for (auto& [number, round] : rounds_) {
    if (is_closed(round)) continue;
    if (leads(round)) {
      if (!round.reports.contains(rank))
        out.push_back({rank, {.kind = Kind::Prepare, .round = number, .ballot = round.promised}});
      else if (round.accepted_by)
        out.push_back({rank, proposal_of(number, round)});
    } else if (coordinator_of(round.promised) == rank) {
      out.push_back({rank, report_of(number, round)});
    }
  }
}

// Also who is silent: an answer says that it is not.
void AgreementState::probe(Outputs& out) {
  for (auto& [number, round] : rounds_) {
    if (is_closed(round)) continue;
    if (!leads(round)) out.push_back({coordinator_of(round.promised), report_of(number, round)});
    for (Rank rank = 0; rank < std::ssize(views_) && leads(round); ++rank) {
      const auto at = static_cast<size_t>(rank);
      if (rank != self_ && !round.reports.contains(rank) && views_[at] < PeerView::Left && !round.excluded[at])
        out.push_back({rank, {.kind = Kind::Prepare, .round = number, .ballot = round.promised}});
    }
  }
}

bool AgreementState::is_undecided() const {
  return std::ranges::any_of(rounds_, [](const auto& entry) { return !is_closed(entry.second); });
}

AgreementMessage AgreementState::report_of(uint64_t number, const Round& round) const {
  AgreementMessage report{.kind = Kind::Report,
                          .has_come = round.has_come,
                          .is_over = round.is_over,
                          .has_given_up = round.has_given_up,
                          .round = number,
                          .ballot = round.promised,
                          .terms = round.terms,
                          .accepted_ballot = round.accepted_ballot,
                          .value = round.accepted,
                          .views = views_};
  for (size_t rank = 0; rank < views_.size(); ++rank)
    if (round.excluded[rank] && report.views[rank] != PeerView::Dead) report.views[rank] = PeerView::Excluded;
  return report;
}

AgreementMessage AgreementState::proposal_of(uint64_t number, const Round& round) {
  return {.kind = Kind::Proposal, .round = number, .ballot = round.promised, .value = round.accepted};
}

// Follows the lowest ballot that it may, and says there what has changed.
void AgreementState::advance(uint64_t number, Round& round, Outputs& out) {
  if (is_closed(round)) return;
  const auto may_lead = [&](Rank rank) {
    const auto at = static_cast<size_t>(rank);
    return rank == self_ || (views_[at] == PeerView::Fine && !round.excluded[at]);
  };
  int64_t ballot = round.promised;
  while (!may_lead(coordinator_of(ballot))) ++ballot;
  raise(round, ballot);
  AgreementMessage report = report_of(number, round);
  if (leads(round)) {
    round.reports[self_] = std::move(report);
    lead(number, round, out);
  } else if (round.reported != report) {
    round.reported = report;
    out.push_back({coordinator_of(round.promised), std::move(report)});
  }
}

void AgreementState::lead(uint64_t number, Round& round, Outputs& out) {
  if (!round.accepted_by && !propose(number, round, out)) return;
  if (is_hopeless(number, round, *round.accepted_by)) return close({.kind = Kind::Missed, .round = number}, round, out);
  if (is_quorum(number, round, *round.accepted_by))
    close({.kind = Kind::Decision, .round = number, .value = round.accepted}, round, out);
}

// Whether it could.
bool AgreementState::propose(uint64_t number, Round& round, Outputs& out) {
  const bool is_over = std::ranges::any_of(round.reports, [](const auto& entry) { return entry.second.is_over; });
  std::vector<RankPart> parts;
  std::vector<bool> have_reported(views_.size());
  for (Rank rank = 0; rank < std::ssize(views_); ++rank) {
    const auto report = round.reports.find(rank);
    have_reported[static_cast<size_t>(rank)] = report != round.reports.end();
    const std::optional<RankPart> part =
        part_of(view_in(number, round, rank), report == round.reports.end() ? nullptr : &report->second, is_over);
    if (!part) return false;
    parts.push_back(*part);
  }
  if (std::ranges::count(parts, RankPart::In) == 0) return false;
  if (is_hopeless(number, round, have_reported)) close({.kind = Kind::Missed, .round = number}, round, out);
  if (is_closed(round) || !is_quorum(number, round, have_reported)) return false;
  round.accepted = value_of(round, std::move(parts));
  round.accepted_ballot = round.promised;
  round.accepted_by.emplace(views_.size());
  (*round.accepted_by)[static_cast<size_t>(self_)] = true;
  for (const auto& [rank, report] : round.reports)
    if (rank != self_) out.push_back({rank, proposal_of(number, round)});
  return true;
}

// As the coordinator sees it: who has reported is heard of, whatever others say.
PeerView AgreementState::view_in(uint64_t number, const Round& round, Rank rank) const {
  const auto at = static_cast<size_t>(rank);
  if (views_[at] == PeerView::Dead || (views_[at] == PeerView::Left && rounds_left_[at] < number))
    return PeerView::Dead;
  PeerView view = round.excluded[at] ? PeerView::Excluded : views_[at];
  const bool has_reported = round.reports.contains(rank);
  if (has_reported && view <= PeerView::Silent) view = PeerView::Fine;
  for (const auto& [other, report] : round.reports) {
    const PeerView said = report.views[at];
    if (said == PeerView::Excluded || (said == PeerView::Silent && view < said && !has_reported)) view = said;
  }
  return view;
}

// Nothing while it has to be waited for. report: none, if it has not reported.
std::optional<RankPart> AgreementState::part_of(PeerView view, const AgreementMessage* report, bool is_over) const {
  const bool has_come = report != nullptr && report->has_come;
  // Who comes although others exclude it makes another call than they do.
  if (view > PeerView::Absent && !(has_come && view == PeerView::Excluded)) return RankPart::Out;
  if (has_come) return report->has_given_up ? RankPart::Late : RankPart::In;
  if (!is_over || (report == nullptr && view == PeerView::Fine)) return std::nullopt;
  return RankPart::Late;
}

// What was accepted in the highest ballot, else what the ranks bring.
AgreedValue AgreementState::value_of(const Round& round, std::vector<RankPart> parts) const {
  const AgreementMessage* latest = nullptr;
  for (const auto& [rank, report] : round.reports)
    if (report.accepted_ballot >= 0 && (latest == nullptr || report.accepted_ballot > latest->accepted_ballot))
      latest = &report;
  if (latest != nullptr) return latest->value;
  AgreedValue value{.parts = std::move(parts), .flags = ~uint64_t{0}};
  const ConsensusTerms* first = nullptr;
  for (const auto& [rank, report] : round.reports) {
    if (value.parts[static_cast<size_t>(rank)] != RankPart::In) continue;
    if (first == nullptr) first = &report.terms;
    value.flags &= report.terms.flags;
    if (report.terms.call != first->call && value.different < 0) value.different = rank;
  }
  if (first != nullptr) value.payload = first->payload;
  return value;
}

bool AgreementState::is_quorum(uint64_t number, const Round& round, const std::vector<bool>& ranks) const {
  bool needs_majority = false;
  for (Rank rank = 0; rank < std::ssize(ranks); ++rank) {
    const PeerView view = view_in(number, round, rank);
    if (ranks[static_cast<size_t>(rank)] || view == PeerView::Dead || view == PeerView::Excluded) continue;
    if (view == PeerView::Fine || view == PeerView::Left) return false;
    needs_majority = true;
  }
  const auto count = 2 * std::ranges::count(ranks, true), all = std::ssize(ranks);
  return !needs_majority || count > all || (count == all && ranks[0]);
}

// Nobody is left of whom an answer may come, and some have left who may have gone on with an outcome.
bool AgreementState::is_hopeless(uint64_t number, const Round& round, const std::vector<bool>& ranks) const {
  if (is_quorum(number, round, ranks)) return false;
  for (Rank rank = 0; rank < std::ssize(views_); ++rank)
    if (!ranks[static_cast<size_t>(rank)] && view_in(number, round, rank) < PeerView::Left) return false;
  return true;
}

AgreementMessage AgreementState::outcome_of(uint64_t number, const Round& round) {
  if (!round.decided) return {.kind = Kind::Missed, .round = number};
  return {.kind = Kind::Decision, .round = number, .value = *round.decided};
}

// Those who have reported to this rank wait for the outcome.
void AgreementState::close(const AgreementMessage& outcome, Round& round, Outputs& out) {
  if (outcome.kind == Kind::Decision) round.decided = outcome.value;
  round.is_missed = outcome.kind == Kind::Missed;
  has_missed_ |= round.is_missed && outcome.round == current_;
  for (const auto& [rank, report] : round.reports)
    if (rank != self_) out.push_back({rank, outcome});
}

std::optional<ConsensusOutcome> AgreementState::outcome() const {
  ConsensusOutcome outcome;
  outcome.is_self_out = has_missed_;
  if (has_missed_) return outcome;
  const auto found = rounds_.find(current_);
  if (found == rounds_.end() || !found->second.decided) return std::nullopt;
  const AgreedValue& value = *found->second.decided;
  for (int rank = 0; rank < std::ssize(value.parts); ++rank) {
    const RankPart part = value.parts[static_cast<size_t>(rank)];
    (part == RankPart::In ? outcome.in : part == RankPart::Out ? outcome.out : outcome.late).push_back(rank);
  }
  if (std::ranges::count(outcome.out, self_) > 0) {
    outcome = {};
    outcome.is_self_out = true;
    return outcome;
  }
  outcome.flags = value.flags;
  outcome.payload = value.payload;
  if (value.different >= 0) outcome.different = value.different;
  return outcome;
}

std::vector<Rank> AgreementState::missing() const {
  std::vector<Rank> ranks;
  const auto found = rounds_.find(current_);
  if (found == rounds_.end() || is_closed(found->second)) return ranks;
  const Round& round = found->second;
  for (Rank rank = 0; rank < std::ssize(views_); ++rank) {
    const bool is_lost = view(rank) >= PeerView::Left || round.excluded[static_cast<size_t>(rank)];
    const bool is_heard = leads(round) ? round.reports.contains(rank) : view(rank) == PeerView::Fine;
    if (rank != self_ && !is_lost && !is_heard) ranks.push_back(rank);
  }
  return ranks;
}

bool AgreementState::is_cut_off() const {
  std::vector<bool> are_heard(views_.size(), true);
  for (const Rank rank : missing()) {
    if (view(rank) != PeerView::Silent) return false;
    are_heard[static_cast<size_t>(rank)] = false;
  }
  return std::ranges::count(are_heard, false) > 0 && !is_quorum(current_, rounds_.at(current_), are_heard);
}

}  // namespace ccom
