// SPDX-License-Identifier: Apache-2.0
//
// Agreement among the ranks of several hosts that still live, as a pure state machine without clock, threads or
// sockets. One host has a simpler way (consensus.h): there memory outlives the ranks.
//
// A round is one decision of Paxos (Lamport, The Part-Time Parliament, 1998) among the ranks. Ballot b is coordinated
// by rank b mod n. Each rank follows the lowest ballot, not below one that it has promised, whose coordinator is not
// lost for it; so all begin with the lowest rank that lives. To it they report what they bring. When each rank has
// reported or is lost, or a reporter's time is over, the coordinator proposes the outcome; when it is accepted, it
// tells all. A new coordinator proposes what a report says was accepted last.
//
// Quorum: all ranks but those that are known to have ended, or are excluded; where some are silent, all others, if they
// are more than a half of all, or just a half and have rank 0. The first needs no majority after deaths: who has
// decided and lives is in it. The second needs nobody who is merely silent: at most one side of a divided network goes
// on, the other one waits until its time is over. Nobody goes on without a rank that has left in this round: it may
// have the outcome. So, whoever dies at whichever point, is cut off, or taken for silent,
//   - all ranks that live get the same outcome, or none;
//   - nobody waits for a rank that is known to have ended.
// A living rank must not be taken for dead once it listens; before that, only if no rank is silent.
//
// Without faults: n-1 messages four times (report, proposal, accepted, decision), 2 round trips.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "liveness/agreement_message.h"
#include "liveness/consensus.h"

namespace ccom {

// One rank's part. Inputs are applied in any order; each may add messages to `out`. Messages to one rank must arrive in
// order or not at all; after a gap attach() is to be called. For one thread.
class AgreementState {
 public:
  static constexpr Rank kAll = -1;
  struct Output {
    Rank to = kAll;  // kAll: every rank to which there is a connection
    AgreementMessage message;
  };
  using Outputs = std::vector<Output>;

  AgreementState(Rank self, int nranks)
      : self_(self),
        views_(static_cast<size_t>(nranks), PeerView::Fine),
        is_heard_(views_.size()),
        rounds_left_(views_.size()) {}

  // This rank takes part in a round: 1, 2, ..., the same sequence on all ranks.
  void begin(uint64_t round, const ConsensusTerms& terms, const std::vector<Rank>& excluded, Outputs& out);
  // It does not want to wait longer for others in its round: who has not come is Late.
  void end_wait(Outputs& out);
  // It has gone on without an outcome: if there is one after all, it is Late in it.
  void give_up(Outputs& out);
  void receive(Rank from, const AgreementMessage& message, Outputs& out);
  // There is a connection to that rank, a first one or a new one.
  void attach(Rank rank, Outputs& out);
  // What this rank has found out about another one. Who is Dead stays so, unless it speaks; not Left.
  void see(Rank rank, PeerView view, Outputs& out);
  // It has left in order, and had begun so many rounds. It may have gone on with the outcome of the last one; it takes
  // no part in later ones.
  void see_left(Rank rank, uint64_t rounds, Outputs& out);
  // To be called from time to time while is_undecided(): asks who has not reported, and reports again.
  void probe(Outputs& out);

  PeerView view(Rank rank) const { return views_[static_cast<size_t>(rank)]; }
  bool is_undecided() const;
  // Of the round that this rank has begun last, if it is known.
  std::optional<ConsensusOutcome> outcome() const;
  // Who has not reported in it, as far as this rank can tell.
  std::vector<Rank> missing() const;
  // Whether all of these are silent, and those that are heard no majority.
  bool is_cut_off() const;

 private:
  struct Round {
    bool has_come = false, is_over = false, has_given_up = false;
    ConsensusTerms terms{};
    std::vector<bool> excluded;
    int64_t promised = 0;  // the ballot that this rank follows
    int64_t accepted_ballot = -1;
    AgreedValue accepted{};
    std::optional<AgreedValue> decided;
    bool is_missed = false;                    // the others know the outcome no more
    std::optional<AgreementMessage> reported;  // to the coordinator, last
    // As the coordinator of `promised`.
    std::map<Rank, AgreementMessage> reports;
    std::optional<std::vector<bool>> accepted_by;  // since it has proposed
  };

  Rank coordinator_of(int64_t ballot) const { return static_cast<Rank>(ballot % std::ssize(views_)); }
  bool leads(const Round& round) const { return coordinator_of(round.promised) == self_; }
  bool is_for_all(const AgreementMessage& message) const;
  Round& round_of(uint64_t number);
  static void raise(Round& round, int64_t ballot);
  void hear(const std::vector<PeerView>& views, Outputs& out);
  void answer(Rank from, const AgreementMessage& message, Round& round, Outputs& out);
  void advance(uint64_t number, Round& round, Outputs& out);
  void lead(uint64_t number, Round& round, Outputs& out);
  bool propose(uint64_t number, Round& round, Outputs& out);
  AgreementMessage report_of(uint64_t number, const Round& round) const;
  static AgreementMessage proposal_of(uint64_t number, const Round& round);
  PeerView view_in(uint64_t number, const Round& round, Rank rank) const;
  std::optional<RankPart> part_of(PeerView view, const AgreementMessage* report, bool is_over) const;
  AgreedValue value_of(const Round& round, std::vector<RankPart> parts) const;
  bool is_quorum(uint64_t number, const Round& round, const std::vector<bool>& ranks) const;
  bool is_hopeless(uint64_t number, const Round& round, const std::vector<bool>& ranks) const;
  static bool is_closed(const Round& round) { return round.decided || round.is_missed; }
  static AgreementMessage outcome_of(uint64_t number, const Round& round);
  void close(const AgreementMessage& outcome, Round& round, Outputs& out);

  const Rank self_;
  std::vector<PeerView> views_;        // by rank
  std::vector<bool> is_heard_;         // by rank: it has spoken, and was not lost since
  std::vector<uint64_t> rounds_left_;  // by rank, of who has Left
  std::map<uint64_t, Round> rounds_;
  uint64_t current_ = 0;  // the round that this rank has begun last
  bool has_missed_ = false;
};

}  // namespace ccom
