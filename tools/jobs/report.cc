// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/report.h"

#include <algorithm>

#include "base/text.h"
#include "tools/jobs/words.h"

namespace ccom {
namespace {

const CommunicatorSeen* find(const HostSeen& seen, uint64_t number) {
  const auto found = std::ranges::find(seen.communicators, number, &CommunicatorSeen::number);
  return found == seen.communicators.end() ? nullptr : &*found;
}

std::string title_of(const HostSeen& seen, uint64_t number) {
  const CommunicatorSeen* const communicator = find(seen, number);
  return title_of_communicator(number, communicator == nullptr ? "" : communicator->name);
}

std::string sentence(const HostSeen& seen, const Health::LateRank& late) {
  const CommunicatorSeen* const communicator = find(seen, late.communicator);
  const RankSeen* const rank = communicator == nullptr ? nullptr : communicator->find(late.rank);
  const bool names_host = rank != nullptr && communicator->hosts > 1 && !rank->host.empty();
  std::string text = title_of(seen, late.communicator) + ": rank " + std::to_string(late.rank) +
                     (names_host ? " (host " + rank->host + ")" : "") + " is " + late.reason;
  if (late.waiting.empty()) return text;
  return text + "; " + name_ranks(late.waiting) + (late.waiting.size() == 1 ? " waits" : " wait") + " for it for " +
         short_seconds(late.seconds);
}

std::string sentence(const HostSeen& seen, const Health::Cycle& cycle) {
  std::string text = "deadlock:";
  for (size_t i = 0; i < cycle.size(); ++i) {
    const CommunicatorSeen* const communicator = find(seen, cycle[i].communicator);
    const RankSeen* const rank = communicator == nullptr ? nullptr : communicator->find(cycle[i].rank);
    if (rank == nullptr) continue;
    text += (i == 0 ? " rank " : ", rank ") + std::to_string(cycle[i].rank) + " of " + title_of(*communicator) +
            " is " + text_of(rank->activity) + " and waits for rank " + std::to_string(rank->activity.waits_for);
  }
  return text;
}

std::string sentence(const HostSeen& seen, const Health::Straggler& straggler) {
  const CommunicatorSeen* const communicator = find(seen, straggler.communicator);
  const RankSeen* const rank = communicator == nullptr ? nullptr : communicator->find(straggler.rank);
  const std::string text = title_of(seen, straggler.communicator) + ": rank " + std::to_string(straggler.rank) +
                           " made the others wait " + percent(straggler.share) + " of the time";
  if (straggler.passed_on) return text + "; it may have passed on what others did: it has waited itself";
  return text + (rank != nullptr && rank->is_here() ? "" : "; whether it waited itself is known on its host");
}

std::string sentence(const Health::BusyLink& link) {
  return "the connection of " + name_ranks(link.ranks) + " to " + link.remote + " had data on its way for " +
         percent(link.share) + " of the time, " + short_figure(link.bytes_per_second) + "B/s";
}

}  // namespace

std::string title_of(const CommunicatorSeen& communicator) {
  return title_of_communicator(communicator.number, communicator.name);
}

std::string told_before(const CommunicatorSeen& communicator) {
  const double seconds = communicator.told_before();
  if (seconds < 0) return "";
  return printed(", other hosts as of %.1f s ago", seconds);
}

std::string unknown_ranks(const CommunicatorSeen& communicator) {
  if (communicator.unknown.empty()) return "";
  return name_ranks(communicator.unknown) + (communicator.unknown.size() == 1 ? " is" : " are") + " unknown, no answer";
}

std::vector<std::string> findings(const HostSeen& seen, const Health& health) {
  std::vector<std::string> found;
  for (const CommunicatorSeen& communicator : seen.communicators)
    if (!communicator.error.empty()) found.push_back(title_of(communicator) + ": " + communicator.error);
  for (const Health::Place& dead : health.dead)
    found.push_back(title_of(seen, dead.communicator) + ": rank " + std::to_string(dead.rank) + " is dead");
  for (const Health::Cycle& cycle : health.cycles) found.push_back(sentence(seen, cycle));
  for (const Health::LateRank& late : health.late) found.push_back(sentence(seen, late));
  for (const Health::Straggler& straggler : health.stragglers) found.push_back(sentence(seen, straggler));
  for (const Health::BusyLink& link : health.busy_links) found.push_back(sentence(link));
  if (seen.unlisted > 0) found.push_back(std::to_string(seen.unlisted) + " communicators are not listed");
  if (seen.other_versions > 0)
    found.push_back(std::to_string(seen.other_versions) + " processes have another version of ccom and are not shown");
  return found;
}

std::string to_text(const HostSeen& seen, const Health& health) {
  std::string text = health.verdict == Health::Verdict::Nothing ? "no communicators of this user on this host\n"
                                                                : std::string(name_of(health.verdict)) + "\n";
  for (const std::string& sentence : findings(seen, health)) text += sentence + "\n";
  for (const CommunicatorSeen& communicator : seen.communicators) {
    std::vector<RankActivity> activities;
    for (const RankSeen& rank : communicator.seen) {
      activities.push_back(rank.activity);
      if (communicator.hosts > 1) activities.back().host = rank.host;
    }
    const std::string unknown = unknown_ranks(communicator);
    text += title_of(communicator) + ", " + std::to_string(communicator.ranks) + " ranks, " +
            std::to_string(communicator.hosts) + (communicator.hosts == 1 ? " host, " : " hosts, ") +
            short_seconds(communicator.age) + told_before(communicator) + ": " + describe(std::move(activities)) +
            (unknown.empty() ? "" : "; " + unknown) + "\n";
  }
  return text;
}

}  // namespace ccom
