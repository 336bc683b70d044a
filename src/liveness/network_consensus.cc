// SPDX-License-Identifier: Apache-2.0
#include "liveness/network_consensus.h"

#include <numeric>

#include "base/text.h"
#include "liveness/consensus_result.h"

namespace ccom {
namespace {

constexpr std::chrono::milliseconds kOutcomeLook{5};

Status no_majority(Rank self, const std::vector<Rank>& missing) {
  return error(
             ErrorKey::RankLate,
             "rank %d cannot agree on who is left: %s did not answer and may still run, and the others are no majority",
             self, name_ranks(missing).c_str())
      .with_peers({missing.begin(), missing.end()})
      .with_cure(
          "check these hosts and the network between them; exclude ranks by name that are known to have ended, or "
          "restart the job");
}

}  // namespace

Result<Consensus> agree_over_network(AgreementLinks& links, LivenessThread& thread, const MonitorConfig& config,
                                     uint64_t round, const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                                     const WaitLimit& limit) {
  std::vector<Rank> ranks(links.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  thread.run([&] { links.begin(round, terms, excluded); });
  bool is_over = false, is_interrupted = false;
  Deadline last = Deadline::after_ms(0);
  for (;;) {
    if (const std::optional<ConsensusOutcome> outcome = links.wait_for_outcome(kOutcomeLook))
      return conclude(*outcome, ranks, config.rank, is_interrupted);
    if (!is_over && limit.is_reached()) {
      is_over = true;
      is_interrupted = !limit.deadline().passed();
      last = Deadline::after_ms(2 * config.dead_ms);  // by then all who do not answer are silent
      thread.run([&] { links.end_wait(); });
      continue;
    }
    if (!is_over) continue;
    std::vector<Rank> missing;
    bool ends = last.passed();
    thread.run([&] {
      ends |= links.is_cut_off();
      missing = links.missing();
      if (ends) links.give_up();
    });
    if (ends) return no_majority(config.rank, missing);
  }
}

}  // namespace ccom
