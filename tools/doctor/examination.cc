// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/examination.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/options.h"
#include "tools/doctor/inspect.h"
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

// The host for which this rank runs the probes, or -1.
int led_by(int rank, const Report& report) {
  for (size_t host = 0; host < report.hosts.size(); ++host) {
    if (report.hosts[host].ranks.front() == rank) return static_cast<int>(host);
  }
  return -1;
}

Status probe(JobRendezvous& rendezvous, int rank, Report& report) {
  const int self = led_by(rank, report);
  const auto batches = static_cast<int64_t>(1 + report.hosts.size() * 8 / 64);
  const std::vector<Reach> own =
      self < 0 ? std::vector<Reach>() : try_all(rendezvous.secret().derive("ccom doctor"), self, report.hosts);
  CCOM_TRY_ASSIGN(const auto all,
                  rendezvous.exchange("probes", own, std::chrono::seconds(30 + kProbeSeconds * batches)));
  for (const std::vector<Reach>& of_rank : all) {
    report.reaches.insert(report.reaches.end(), of_rank.begin(), of_rank.end());
  }
  return {};
}

bool has_address(const HostEntry& host) { return !host.report.addresses.empty(); }

// The rounds without pairs that cannot connect.
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

Status examine_together(JobRendezvous& rendezvous, RankReport own, const Settings& settings, Report& report) {
  const int rank = own.rank;
  CCOM_TRY_ASSIGN(const auto host_ids,
                  rendezvous.exchange("names", own.host_id, std::chrono::seconds(settings.wait_seconds)));
  const bool leads = std::ranges::find(host_ids, own.host_id) - host_ids.begin() == rank;
  std::vector<std::string> failures;
  std::optional<Answering> answering;
  if (leads) answering.emplace(rendezvous.secret().derive("ccom doctor"), own.addresses, failures);
  if (!failures.empty() && own.filter_failure.empty()) own.filter_failure = failures.front();
  CCOM_TRY_ASSIGN(const auto ranks, rendezvous.exchange("hosts", own, 30s));
  const int64_t clock_ms = wall_clock_ms();  // all ranks are here at almost the same time
  report.hosts = group_hosts(ranks);
  for (const RankReport& each : ranks) report.versions.push_back(each.ccom_version);
  CCOM_TRY_ASSIGN(const auto clocks, rendezvous.exchange("clocks", clock_ms, 30s));
  for (HostEntry& host : report.hosts) host.clock_ms = clocks[static_cast<size_t>(host.ranks.front())];
  CCOM_TRY(probe(rendezvous, rank, report));
  if (!settings.measures) return {};
  CCOM_TRY(measure_pairs(rendezvous, rank, measurable(report), report));
  // Measures slow pairs again, alone: a shared machine is temporarily slow.
  constexpr int kMoreTimes = 3;
  for (int i = 0; i < kMoreTimes; ++i) {
    for (const Pair& pair : slow_pairs(report)) CCOM_TRY(measure_pairs(rendezvous, rank, {{pair}}, report));
  }
  return can_start_a_job(report) ? try_job(rendezvous, rank, report) : Status();
}

}  // namespace

Report examine(int rank, int nranks, const Settings& settings) {
  Report report{.nranks = nranks};
  RankReport own = inspect_host(rank, option("CCOM_SYSFS_ROOT"));
  const std::vector<HostEntry> alone = group_hosts({own});
  Status status;
  auto rendezvous = JobRendezvous::join(rank, nranks, Deadline::after(std::chrono::seconds(settings.wait_seconds)),
                                        Deadline::after(std::chrono::seconds(settings.life_seconds)));
  if (rendezvous) {
    report.rendezvous = rendezvous->where();
    status = examine_together(*rendezvous, std::move(own), settings, report);
  } else {
    status = rendezvous.error();
  }
  if (!status.is_ok()) {
    report.ended = status.text();
    report.missing = status.peers();
    if (report.hosts.empty()) report.hosts = alone;
  }
  return report;
}

}  // namespace ccom::doctor
