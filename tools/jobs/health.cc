// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/health.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "observe/straggler_report.h"

namespace ccom {
namespace {

using State = RankActivity::State;

constexpr double kLeastShare = 0.05;    // of stragglers that are named
constexpr double kLeastSending = 0.25;  // of links that are named, likewise
constexpr size_t kMostCycles = 16;

bool waits(const RankActivity& rank, double seconds) {
  return is_waiting(rank) && rank.waits_for != rank.rank && rank.waited >= seconds;
}
// "(tag 7, 1024 bytes)"
std::string_view message_in(const RankActivity& rank) {
  return std::string_view(rank.message).substr(std::min(rank.message.find('('), rank.message.size()));
}
// In one call, or at the ends of one message.
bool are_in_same(const RankActivity& one, const RankActivity& other) {
  if (one.state != other.state) return false;
  if (one.state == State::InCall) return one.call.number == other.call.number;
  if (one.state != State::Message) return false;
  return one.rank == other.rank ||
         (one.message.starts_with("send") != other.message.starts_with("send") && message_in(one) == message_in(other));
}

Health::LateRank& late_entry(const CommunicatorSeen& communicator, Rank rank, std::vector<Health::LateRank>& late) {
  const auto is_it = [&](const Health::LateRank& entry) {
    return entry.communicator == communicator.number && entry.rank == rank;
  };
  if (const auto found = std::ranges::find_if(late, is_it); found != late.end()) return *found;
  Health::LateRank& made = late.emplace_back();
  made.communicator = communicator.number;
  made.rank = rank;
  const RankSeen* const seen = communicator.find(rank);
  made.reason = seen != nullptr ? full_text_of(seen->activity) : "unknown, no answer";
  return made;
}

// Whom a rank waits for in the end: whoever waits itself is not the cause, unless its process does not run. -1: ranks
// wait for one another in one call, or message, as at both ends of a slow link.
Rank cause_of(const CommunicatorSeen& communicator, const RankActivity& waiting) {
  std::vector<const RankActivity*> chain{&waiting};
  for (;;) {
    const Rank next = chain.back()->waits_for;
    const RankSeen* const other = communicator.find(next);
    if (other == nullptr || is_silent(other->activity) || !waits(other->activity, 0)) return next;
    const auto known = std::ranges::find(chain, &other->activity);
    if (known != chain.end()) {
      const auto behind =
          std::min_element(known, chain.end(), [](auto* a, auto* b) { return a->call.number < b->call.number; });
      const bool is_one_call = std::all_of(known, chain.end(), [&](auto* each) { return are_in_same(**known, *each); });
      return is_one_call ? -1 : (*behind)->rank;
    }
    chain.push_back(&other->activity);
  }
}

void find_late(const CommunicatorSeen& communicator, double late_seconds, std::vector<Health::LateRank>& late) {
  for (const RankSeen& rank : communicator.seen) {
    const RankActivity& own = rank.activity;
    if (is_silent(own)) {
      Health::LateRank& entry = late_entry(communicator, own.rank, late);
      entry.seconds = std::max(entry.seconds, own.silent);
    }
    const Rank cause = !is_silent(own) && waits(own, late_seconds) ? cause_of(communicator, own) : -1;
    if (cause < 0 || cause >= communicator.ranks) continue;
    Health::LateRank& entry = late_entry(communicator, cause, late);
    entry.seconds = std::max(entry.seconds, own.waited);
    entry.waiting.push_back(own.rank);
  }
}

// A wait is counted when it ends; here the current one counts, too. Of ranks of other hosts it is all that is known.
RankWaits waits_until_now(const RankSeen& rank, double age) {
  const RankActivity& now = rank.activity;
  RankWaits all = waits_of(rank.totals, now.rank, age);
  if (!waits(now, 0)) return all;
  all.waited += now.waited;
  const auto found = std::ranges::find(all.waited_for, now.waits_for, &RankWaits::For::rank);
  RankWaits::For& of = found != all.waited_for.end() ? *found : all.waited_for.emplace_back();
  of.rank = now.waits_for;
  of.seconds += now.waited;
  return all;
}

void find_stragglers(const CommunicatorSeen& communicator, std::vector<Health::Straggler>& stragglers) {
  std::vector<RankWaits> all;
  for (const RankSeen& rank : communicator.seen) all.push_back(waits_until_now(rank, communicator.age));
  for (const WaitReport::Straggler& each : report_waits(std::move(all), communicator.ranks).stragglers) {
    if (each.share >= kLeastShare && each.rank >= 0 && each.rank < communicator.ranks && each.rank != each.seen_from)
      stragglers.push_back({communicator.number, each.rank, each.seconds, each.share, each.passed_on});
  }
}

// Links are seen from the sender's side; of what comes in, the other end knows how long it took.
void find_busy_links(const HostSeen& seen, std::vector<Health::BusyLink>& busy) {
  std::map<int32_t, double> ages;  // of processes: of their first communicator
  for (const CommunicatorSeen& communicator : seen.communicators)
    for (const RankSeen& rank : communicator.seen)
      ages[rank.activity.pid] = std::max(ages[rank.activity.pid], communicator.age);
  for (const LinkSeen& link : seen.links) {
    const auto age = ages.find(link.pid);
    if (age == ages.end() || age->second <= 0 || link.sending <= 0) continue;
    const double share = std::min(link.sending / age->second, 1.0);
    if (share >= kLeastSending)
      busy.push_back(
          {link.pid, link.ranks, link.local, link.remote, share, static_cast<double>(link.sent) / link.sending});
  }
}

// Numbers of processes are those of their hosts.
struct Process {
  bool is_here = true;
  std::string host;
  int32_t pid = 0;  // 0: unknown
  friend auto operator<=>(const Process&, const Process&) = default;
};
Process process_of(const RankSeen& rank) { return {rank.is_here(), rank.host, rank.activity.pid}; }

// Of processes that wait for one that has not come to the call. Ranks of one process do not count.
struct Wait {
  Health::Place place;
  Process process, for_process;
};

std::vector<Wait> waits_between_processes(const HostSeen& seen, double late_seconds) {
  std::vector<Wait> found;
  for (const CommunicatorSeen& communicator : seen.communicators) {
    for (const RankSeen& rank : communicator.seen) {
      const RankActivity& own = rank.activity;
      const RankSeen* const other = waits(own, late_seconds) ? communicator.find(own.waits_for) : nullptr;
      if (other == nullptr || are_in_same(own, other->activity)) continue;
      const Process process = process_of(rank), for_process = process_of(*other);
      if (process.pid != 0 && for_process.pid != 0 && process != for_process)
        found.push_back({{communicator.number, own.rank}, process, for_process});
    }
  }
  return found;
}

// Follows the first wait of each process: a process waits in one call, or in one of each of its threads.
void find_cycles(const HostSeen& seen, double late_seconds, std::vector<Health::Cycle>& cycles) {
  std::map<Process, Wait> by_process;
  for (const Wait& wait : waits_between_processes(seen, late_seconds)) by_process.emplace(wait.process, wait);
  std::map<Process, Process> seen_from;  // process -> the one from which the walk began
  for (const auto& [first, wait] : by_process) {
    std::vector<Process> walk;
    for (auto at = by_process.find(first); at != by_process.end() && cycles.size() < kMostCycles;
         at = by_process.find(at->second.for_process)) {
      const Process& process = at->first;
      if (const auto known = seen_from.find(process); known != seen_from.end()) {
        if (known->second != first) break;
        Health::Cycle cycle;
        for (auto in = std::ranges::find(walk, process); in != walk.end(); ++in)
          cycle.push_back(by_process.at(*in).place);
        cycles.push_back(std::move(cycle));
        break;
      }
      seen_from[process] = first;
      walk.push_back(process);
    }
  }
}

}  // namespace

Health judge(const HostSeen& seen, double late_seconds) {
  Health health;
  bool has_failed = false;
  for (const CommunicatorSeen& communicator : seen.communicators) {
    has_failed = has_failed || !communicator.error.empty();
    for (const RankSeen& rank : communicator.seen)
      if (rank.activity.state == State::Dead) health.dead.push_back({communicator.number, rank.activity.rank});
    if (communicator.error.empty()) find_late(communicator, late_seconds, health.late);
    find_stragglers(communicator, health.stragglers);
  }
  if (!health.stragglers.empty()) find_busy_links(seen, health.busy_links);
  find_cycles(seen, late_seconds, health.cycles);
  std::ranges::stable_sort(health.late, std::greater<>(), &Health::LateRank::seconds);
  std::ranges::stable_sort(health.stragglers, {}, [](const Health::Straggler& straggler) {
    return std::pair(straggler.passed_on, -straggler.share);
  });
  std::ranges::stable_sort(health.busy_links, std::greater<>(), &Health::BusyLink::share);
  health.verdict = seen.communicators.empty()                     ? Health::Verdict::Nothing
                   : has_failed || !health.dead.empty()           ? Health::Verdict::Failed
                   : health.late.empty() && health.cycles.empty() ? Health::Verdict::Healthy
                                                                  : Health::Verdict::Late;
  return health;
}

const char* name_of(Health::Verdict verdict) {
  switch (verdict) {
    case Health::Verdict::Healthy: return "healthy";
    case Health::Verdict::Late: return "late";
    case Health::Verdict::Failed: return "failed";
    case Health::Verdict::Nothing: return "nothing";
  }
  return "";
}

}  // namespace ccom
