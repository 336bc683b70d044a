// SPDX-License-Identifier: Apache-2.0
#include "liveness/consensus_result.h"

#include "base/text.h"

namespace ccom {

Result<Consensus> conclude(const ConsensusOutcome& outcome, const std::vector<Rank>& ranks, Rank self,
                           bool is_interrupted) {
  const auto ranks_of = [&](const std::vector<int>& numbers) {
    std::vector<Rank> found;
    for (const int number : numbers) found.push_back(ranks[static_cast<size_t>(number)]);
    return found;
  };
  if (outcome.is_self_out)
    return error(ErrorKey::LeftOut,
                 "the other ranks have gone on without rank %d: it was excluded, or silent for too long, or they have "
                 "left",
                 self)
        .with_peers({self})
        .with_cure("let it join them by ccomCommGrow, or end it");
  if (!outcome.late.empty()) {
    const std::vector<Rank> late = ranks_of(outcome.late);
    if (is_interrupted)
      return error(ErrorKey::WaitInterrupted, "rank %d was interrupted while it waited for %s to agree on who is left",
                   self, name_ranks(late).c_str());
    return error(ErrorKey::RankLate, "%s did not come to agree on who is left", name_ranks(late).c_str())
        .with_peers({late.begin(), late.end()})
        .with_cure(
            "let all ranks that live make this call, or exclude those that do not; a larger timeout waits longer");
  }
  if (outcome.different) {
    const Rank odd = ranks[static_cast<size_t>(*outcome.different)];
    return error(Code::Mismatch, "rank %d makes another call, or the same with other arguments, than rank %d", odd,
                 ranks[static_cast<size_t>(outcome.in.front())])
        .with_peers({odd})
        .with_cure("let all ranks that live shrink, or agree, in the same order and with the same arguments");
  }
  return Consensus{ranks_of(outcome.in), ranks_of(outcome.out), outcome.flags, outcome.payload};
}

}  // namespace ccom
