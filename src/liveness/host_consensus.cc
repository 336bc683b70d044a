// SPDX-License-Identifier: Apache-2.0
#include "liveness/host_consensus.h"

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "liveness/monitor_config.h"

namespace ccom {
namespace {

constexpr std::chrono::milliseconds kLookInterval{5};
// Between two looks at a rank that has not come: at first it is about to, later it may take minutes.
constexpr std::chrono::microseconds kShortest{20}, kLongest{1000};

std::vector<ConsensusSlot*> slots_of(const Board& board) {
  std::vector<ConsensusSlot*> slots;
  for (int slot = 0; slot < board.slots(); ++slot) slots.push_back(&board.slot(slot).consensus);
  return slots;
}

// One rank's, once. Belongs to one thread.
class HostConsensus {
 public:
  // ranks: by slot.
  HostConsensus(Board board, const std::vector<Rank>& ranks, int slot, uint64_t round, const ConsensusTerms& terms);

  // Errors: a Mismatch or a Timeout, which all ranks get that are in, and a RemoteError for this one alone if the
  // others have gone on without it.
  Result<Consensus> run(const std::vector<Rank>& excluded, const std::function<std::optional<Status>()>& find_lost,
                        const WaitLimit& limit);

 private:
  bool is_lost(int slot) const;
  void note(const Status& loss);
  Result<Consensus> result() const;
  std::vector<Rank> ranks_of(const std::vector<int>& slots) const;

  const Board board_;
  const std::vector<Rank>& ranks_;
  const int slot_;
  std::vector<bool> lost_;  // by slot: excluded, or said to be silent
  bool is_interrupted_ = false;
  ConsensusRound round_;
};

HostConsensus::HostConsensus(Board board, const std::vector<Rank>& ranks, int slot, uint64_t round,
                             const ConsensusTerms& terms)
    : board_(board), ranks_(ranks), slot_(slot), lost_(ranks.size()), round_(slots_of(board), slot, round, terms) {}

Result<Consensus> HostConsensus::run(const std::vector<Rank>& excluded,
                                     const std::function<std::optional<Status>()>& find_lost, const WaitLimit& limit) {
  for (size_t slot = 0; slot < ranks_.size(); ++slot) lost_[slot] = std::ranges::count(excluded, ranks_[slot]) > 0;
  note(board_.error());
  const ConsensusRound::Views views{.is_lost = [this](int slot) { return is_lost(slot); },
                                    .is_over = [&] { return is_interrupted_ || limit.deadline().passed(); }};
  std::chrono::microseconds pause = kShortest;
  Deadline next_look = Deadline::after(kLookInterval);
  for (;;) {
    const ConsensusRound::Progress progress = round_.step(views);
    if (progress == ConsensusRound::Progress::Done) return result();
    if (progress == ConsensusRound::Progress::Going) continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
    if (!next_look.passed()) continue;
    next_look = Deadline::after(kLookInterval);
    if (const std::optional<Status> loss = find_lost()) note(*loss);
    is_interrupted_ = limit.is_reached() && !limit.deadline().passed();
  }
}

bool HostConsensus::is_lost(int slot) const {
  return lost_[static_cast<size_t>(slot)] || board_.has_died(slot) || board_.has_left(slot);
}

// Who is silent may come back; until it comes it counts as lost. Other errors name ranks that live.
void HostConsensus::note(const Status& loss) {
  if (loss.is_ok() || loss.key() != ErrorKey::RankSilent) return;
  for (size_t slot = 0; slot < ranks_.size(); ++slot)
    if (std::ranges::count(loss.peers(), ranks_[slot]) > 0) lost_[slot] = true;
}

std::vector<Rank> HostConsensus::ranks_of(const std::vector<int>& slots) const {
  std::vector<Rank> found;
  for (const int slot : slots) found.push_back(ranks_[static_cast<size_t>(slot)]);
  return found;
}

Result<Consensus> HostConsensus::result() const {
  const ConsensusOutcome& outcome = round_.outcome();
  const Rank self = ranks_[static_cast<size_t>(slot_)];
  if (outcome.is_self_out)
    return error(ErrorKey::LeftOut,
                 "the other ranks have gone on without rank %d: it was excluded, or silent for too long", self)
        .with_peers({self})
        .with_cure("let it join them by ccomCommGrow, or end it");
  if (!outcome.late.empty()) {
    const std::vector<Rank> late = ranks_of(outcome.late);
    if (is_interrupted_)
      return error(ErrorKey::WaitInterrupted, "rank %d was interrupted while it waited for %s to agree on who is left",
                   self, name_ranks(late).c_str());
    return error(ErrorKey::RankLate, "%s did not come to agree on who is left", name_ranks(late).c_str())
        .with_peers({late.begin(), late.end()})
        .with_cure(
            "let all ranks that live make this call, or exclude those that do not; a larger timeout waits longer");
  }
  if (outcome.different) {
    const Rank odd = ranks_[static_cast<size_t>(*outcome.different)];
    return error(Code::Mismatch, "rank %d makes another call, or the same with other arguments, than rank %d", odd,
                 ranks_[static_cast<size_t>(outcome.in.front())])
        .with_peers({odd})
        .with_cure("let all ranks that live shrink, or agree, in the same order and with the same arguments");
  }
  return Consensus{ranks_of(outcome.in), ranks_of(outcome.out), outcome.flags, outcome.payload};
}

}  // namespace

Result<Consensus> agree_on_host(const Board& board, const MonitorConfig& config, uint64_t round,
                                const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                                const std::function<std::optional<Status>()>& find_lost, const WaitLimit& limit) {
  if (config.hosts.size() > 1)
    return error(Code::NotSupported, "ranks of %zu hosts cannot agree on who is left; ranks of one host can",
                 config.hosts.size())
        .with_cure("start a new communicator of the ranks that are left, by an id of its own");
  return HostConsensus(board, config.hosts[0].ranks, slot_of(config), round, terms).run(excluded, find_lost, limit);
}

}  // namespace ccom
