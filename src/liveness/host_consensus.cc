// SPDX-License-Identifier: Apache-2.0
#include "liveness/host_consensus.h"

#include <algorithm>
#include <thread>

#include "liveness/consensus_result.h"
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

  // Errors: those of conclude().
  Result<Consensus> run(const std::vector<Rank>& excluded, const std::function<std::optional<Status>()>& find_lost,
                        const WaitLimit& limit);

 private:
  bool is_lost(int slot) const;
  void note(const Status& loss);

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
    if (progress == ConsensusRound::Progress::Done)
      return conclude(round_.outcome(), ranks_, ranks_[static_cast<size_t>(slot_)], is_interrupted_);
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

}  // namespace

Result<Consensus> agree_on_host(const Board& board, const MonitorConfig& config, uint64_t round,
                                const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                                const std::function<std::optional<Status>()>& find_lost, const WaitLimit& limit) {
  return HostConsensus(board, config.hosts[0].ranks, slot_of(config), round, terms).run(excluded, find_lost, limit);
}

}  // namespace ccom
