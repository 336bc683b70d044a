// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/print.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/version.h"

namespace ccom::doctor {
namespace {

std::string verdict_of(Level level) {
  return level == Level::Fine ? "fine" : level == Level::Note ? "works, see the notes" : "trouble";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string describe_data(const RankReport& seen) {
  if (seen.addresses.empty()) return "no data address";
  std::string text = "data on ";
  for (const DataAddress& where : seen.addresses) {
    text += (&where == seen.addresses.data() ? "" : ", ") + where.interface + " " + where.address + ", MTU " +
            std::to_string(where.mtu);
    if (where.bytes_per_second > 0) text += ", " + rate_text(where.bytes_per_second);
  }
  if (seen.filter_origin.empty()) return text + " (the first that is neither loopback nor a bridge)";
  return text + " (by " + seen.filter_origin + "=" + seen.filter + ")";
}

std::string describe_host(const HostEntry& host) {
  const RankReport& seen = host.report;
  std::string text = "  " + seen.kernel + ", " + (seen.instance_type.empty() ? "" : seen.instance_type + ", ") +
                     std::to_string(seen.cpus) + " cores; ccom " + seen.ccom_version + "; ";
  text += seen.libfabric.empty() ? "no libfabric" : "libfabric " + seen.libfabric + " (" + joined(seen.providers) + ")";
  text += "; " + std::to_string(seen.efa_devices) + " EFA devices\n";
  return text + "  " + describe_data(seen) + "\n";
}

std::string describe_speed(const Report& report, const Speed& speed) {
  const std::string pair = "  " + report.hosts[static_cast<size_t>(speed.a)].label + " - " +
                           report.hosts[static_cast<size_t>(speed.b)].label + ": ";
  if (!speed.failure.empty()) return pair + speed.failure + "\n";
  return pair + rate_text(speed.there_bytes_per_second) + " there, " + rate_text(speed.back_bytes_per_second) +
         " back, " + time_text(speed.latency_ns) + " (" + speed.transports + ")\n";
}

std::string describe_reaches(const Report& report) {
  const auto good = std::ranges::count_if(report.reaches, &Reach::carries);
  return "Connections: " + std::to_string(good) + " of " + std::to_string(report.reaches.size()) +
         " directions between data addresses work, 64 KiB included\n";
}

// "reaches 3 of 3 hosts, 3 of 3 reach it; ccom sends at 118 MB/s or more and receives at 110 MB/s or more"
std::string describe_network(const Report& report, int host) {
  if (report.reaches.empty()) return "";
  const auto carried = [&](int Reach::*end) {
    return std::ranges::count_if(
        report.reaches, [&](const Reach& reach) { return reach.*end == host && reach.address == 0 && reach.carries; });
  };
  const std::string others = " of " + std::to_string(report.hosts.size() - 1);
  std::string text = "  reaches " + std::to_string(carried(&Reach::from)) + others + " hosts, " +
                     std::to_string(carried(&Reach::to)) + others + " reach it";
  double sends = 0, receives = 0;
  for (const Speed& speed : report.speeds) {
    if (!speed.failure.empty() || (speed.a != host && speed.b != host)) continue;
    const double out = speed.a == host ? speed.there_bytes_per_second : speed.back_bytes_per_second;
    const double in = speed.a == host ? speed.back_bytes_per_second : speed.there_bytes_per_second;
    sends = sends == 0 ? out : std::min(sends, out);
    receives = receives == 0 ? in : std::min(receives, in);
  }
  if (sends > 0) text += "; ccom sends at " + rate_text(sends) + " and receives at " + rate_text(receives) + " or more";
  return text + "\n";
}

std::string describe_finding(const Finding& finding) {
  std::string text = std::string("  ") + name_of(finding.level) + ": " + finding.text + ".\n";
  if (!finding.cure.empty()) text += "    To do: " + finding.cure + ".\n";
  return text;
}

std::string describe_job(const Job& job) {
  if (!job.tried || !job.failure.empty()) return "";
  char text[256];
  std::snprintf(text, sizeof text,
                "All ranks: a communicator started in %.0f ms (%s); allreduce of 8 bytes %s, of 1 MiB %s, right\n",
                job.start_ms, job.transports.c_str(), time_text(job.small_us * 1e3).c_str(),
                time_text(job.large_us * 1e3).c_str());
  return text;
}

}  // namespace

std::string to_text(const Report& report, const std::vector<Finding>& findings) {
  std::string text = std::string("ccom-doctor ") + kVersion + ": " + std::to_string(report.nranks) + " ranks";
  if (report.ended.empty())
    text += " on " + std::to_string(report.hosts.size()) + (report.hosts.size() == 1 ? " host" : " hosts");
  text += report.rendezvous.empty() ? "\n" : ", rendezvous at " + report.rendezvous + "\n";
  for (int host = 0; host < static_cast<int>(report.hosts.size()); ++host) {
    const HostEntry& entry = report.hosts[static_cast<size_t>(host)];
    text += "\n" + entry.label + " (" + name_ranks(entry.ranks) + "): " + verdict_of(worst(findings, host)) + ".\n";
    text += describe_host(entry) + describe_network(report, host);
    for (const Finding& finding : findings) {
      if (std::ranges::find(finding.hosts, host) != finding.hosts.end()) text += describe_finding(finding);
    }
  }
  text += "\n";
  for (const Finding& finding : findings) {
    if (finding.hosts.empty()) text += describe_finding(finding);
  }
  if (!report.reaches.empty()) text += describe_reaches(report);
  if (!report.speeds.empty()) text += "Pairs of hosts, one rank each, one pair of a host at a time:\n";
  for (const Speed& speed : report.speeds) text += describe_speed(report, speed);
  text += describe_job(report.job);
  const auto troubled = std::ranges::count(findings, Level::Trouble, &Finding::level);
  if (troubled == 0) return text + "Verdict: " + verdict_of(worst(findings)) + ".\n";
  return text + "Verdict: trouble, " + std::to_string(troubled) + (troubled == 1 ? " problem" : " problems") +
         " to fix.\n";
}

}  // namespace ccom::doctor
