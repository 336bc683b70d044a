// SPDX-License-Identifier: Apache-2.0
#include "liveness/call_mismatch.h"

#include <algorithm>
#include <thread>

#include "base/call.h"
#include "base/time.h"
#include "liveness/monitor.h"

namespace ccom {
namespace {

constexpr std::chrono::milliseconds kPatience{500};  // with ranks that come late

}  // namespace

Status find_mismatch(Monitor& monitor, const MadeCall& a, const MadeCall& b, const char* note) {
  if (a.text != b.text || has_history_of(a.number, b.number)) {
    return mismatch_error(a.rank, a.text, b.rank, b.text, note);
  }
  // This compares the last calls of all ranks, and what they left; whose results are wrong is known once all have come.
  const bool has_results = monitor.last_call().results != 0;
  const Deadline patience = Deadline::after(has_results ? kPatience : std::chrono::milliseconds(0));
  do {
    monitor.find_stragglers();
    if (monitor.failed()) return monitor.status();
    if (has_results) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (!patience.passed());
  return mismatch_error(a.rank, a.text, b.rank, b.text,
                        has_results ? " (equal calls after different ones, or after different results)"
                                    : " (equal calls after different ones)");
}

Status results_error(const BegunCall& a, const BegunCall& b, const std::string& before) {
  const bool is_tie = a.ranks == b.ranks;
  const auto& [usual, odd] = a.ranks < b.ranks ? std::pair(b, a) : std::pair(a, b);
  const std::string others = odd.ranks == 1 ? "" : " and " + std::to_string(odd.ranks - 1) + " more";
  const std::string usual_ranks =
      usual.ranks == 1 ? "rank " + std::to_string(usual.rank) : "the " + std::to_string(usual.ranks) + " other ranks";
  Status found = error(ErrorKey::ResultsDiffer,
                       "results that must be equal on all ranks differ after %s: those of rank %d%s from those of %s%s",
                       before.c_str(), odd.rank, others.c_str(), usual_ranks.c_str(),
                       is_tie ? ", and none are those of most ranks" : "");
  std::vector<Rank> peers{odd.rank};
  if (is_tie) peers = {std::min(a.rank, b.rank), std::max(a.rank, b.rank)};
  return std::move(found)
      .with_peers(std::move(peers))
      .with_cure("check memory and processor of the rank whose results differ, and what it gave to ccomCommWitness");
}

Status mismatch_error(Rank a, const std::string& call_of_a, Rank b, const std::string& call_of_b, const char* note) {
  return error(Code::Mismatch, "ranks made different calls: rank %d: %s; rank %d: %s%s", a, call_of_a.c_str(), b,
               call_of_b.c_str(), note)
      .with_peers({std::min(a, b), std::max(a, b)})
      .with_cure("make the same calls in the same order with equal count, type, operator and root on all ranks");
}

}  // namespace ccom
