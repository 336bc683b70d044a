// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/examination.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/options.h"
#include "tools/doctor/look.h"
#include "tools/doctor/probes.h"
#include "tools/doctor/speeds.h"
#include "tools/doctor/verdict.h"

namespace ccom::doctor {
namespace {

using namespace std::chrono_literals;

int64_t wall_clock_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The host whose probes this rank makes, or -1.
int led_by(int rank, const Report& report) {
  for (size_t host = 0; host < report.hosts.size(); ++host) {
    if (report.hosts[host].ranks.front() == rank) return static_cast<int>(host);
  }
  return -1;
}

Status probe(Meeting& meeting, int rank, Report& report) {
  const int self = led_by(rank, report);
  const auto batches = static_cast<int64_t>(1 + report.hosts.size() * 8 / 64);
  const std::vector<Reach> mine =
      self < 0 ? std::vector<Reach>() : try_all(meeting.secret().derive("ccom doctor"), self, report.hosts);
  CCOM_TRY_ASSIGN(const auto all, meeting.exchange("probes", mine, std::chrono::seconds(30 + kProbeSeconds * batches)));
  for (const std::vector<Reach>& of_rank : all) {
    report.reaches.insert(report.reaches.end(), of_rank.begin(), of_rank.end());
  }
  return {};
}

bool has_address(const HostEntry& host) { return !host.report.addresses.empty(); }

// Rounds without the pairs that cannot talk to each other.
std::vector<std::vector<Pair>> measurable(const Report& report) {
  std::set<Pair> broken;
  for (const Reach& reach : report.reaches) {
    if (reach.carries || reach.address > 0) continue;
    broken.emplace(std::min(reach.from, reach.to), std::max(reach.from, reach.to));
  }
  const auto cannot = [&](Pair pair) {
    return broken.contains(pair) || !has_address(report.hosts[static_cast<size_t>(pair.first)]) ||
           !has_address(report.hosts[static_cast<size_t>(pair.second)]);
  };
  auto rounds = rounds_of_pairs(static_cast<int>(report.hosts.size()));
  for (std::vector<Pair>& pairs : rounds) std::erase_if(pairs, cannot);
  return rounds;
}

bool can_start_a_job(const Report& report) {
  const auto is_good = [](const Reach& reach) { return reach.carries || reach.address > 0; };
  return std::ranges::all_of(report.reaches, is_good) && std::ranges::all_of(report.hosts, has_address) &&
         std::ranges::all_of(report.speeds, [](const Speed& speed) { return speed.failure.empty(); }) &&
         std::ranges::all_of(report.versions, [&](const auto& version) { return version == report.versions[0]; });
}

Status examine_together(Meeting& meeting, RankReport mine, const Settings& settings, Report& report) {
  const int rank = mine.rank;
  CCOM_TRY_ASSIGN(const auto host_ids,
                  meeting.exchange("names", mine.host_id, std::chrono::seconds(settings.wait_seconds)));
  const bool leads = std::ranges::find(host_ids, mine.host_id) - host_ids.begin() == rank;
  std::vector<std::string> failures;
  std::optional<Answering> answering;
  if (leads) answering.emplace(meeting.secret().derive("ccom doctor"), mine.addresses, failures);
  if (!failures.empty() && mine.filter_failure.empty()) mine.filter_failure = failures.front();
  CCOM_TRY_ASSIGN(const auto ranks, meeting.exchange("hosts", mine, 30s));
  const int64_t clock_ms = wall_clock_ms();  // all ranks come here within a moment
  report.hosts = group_hosts(ranks);
  for (const RankReport& each : ranks) report.versions.push_back(each.ccom_version);
  CCOM_TRY_ASSIGN(const auto clocks, meeting.exchange("clocks", clock_ms, 30s));
  for (HostEntry& host : report.hosts) host.clock_ms = clocks[static_cast<size_t>(host.ranks.front())];
  CCOM_TRY(probe(meeting, rank, report));
  if (!settings.measures) return {};
  CCOM_TRY(measure_pairs(meeting, rank, measurable(report), report));
  // Once more, alone: a machine that others use as well is slow at times.
  for (const Pair& pair : slow_pairs(report)) CCOM_TRY(measure_pairs(meeting, rank, {{pair}}, report));
  return can_start_a_job(report) ? try_job(meeting, rank, report) : Status();
}

}  // namespace

Report examine(int rank, int nranks, const Settings& settings) {
  Report report{.nranks = nranks};
  RankReport mine = look_around(rank, option("CCOM_SYSFS_ROOT"));
  const std::vector<HostEntry> alone = group_hosts({mine});
  Status status;
  auto meeting = Meeting::come(rank, nranks, Deadline::after(std::chrono::seconds(settings.wait_seconds)),
                               Deadline::after(std::chrono::seconds(settings.life_seconds)));
  if (meeting) {
    report.meeting = meeting->where();
    status = examine_together(*meeting, std::move(mine), settings, report);
  } else {
    status = meeting.error();
  }
  if (!status.is_ok()) {
    report.ended = status.message() + (status.cure().empty() ? "" : " (" + status.cure() + ")");
    report.missing = status.peers();
    if (report.hosts.empty()) report.hosts = alone;
  }
  return report;
}

}  // namespace ccom::doctor
