// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/verdict.h"

#include <algorithm>

#include "base/text.h"

namespace ccom::doctor {
namespace {

void judge_end(const Report& report, std::vector<Finding>& findings) {
  if (report.ended.empty()) return;
  Finding finding{.level = Level::Trouble, .text = "The examination ended early: " + report.ended};
  for (size_t host = 0; host < report.hosts.size(); ++host) {
    const bool is_missing = std::ranges::any_of(report.missing, [&](int rank) {
      return std::ranges::find(report.hosts[host].ranks, rank) != report.hosts[host].ranks.end();
    });
    if (is_missing) finding.hosts.push_back(static_cast<int>(host));
  }
  if (!finding.hosts.empty()) finding.text += ". Their hosts: " + name_hosts(report, finding.hosts);
  finding.cure = "check whether the missing ranks have started, and their output";
  findings.push_back(std::move(finding));
}

std::string with_unit(double value, const char* unit) {
  return printed(value < 9.95 ? "%.1f %s" : "%.0f %s", value, unit);
}

}  // namespace

const char* name_of(Level level) {
  switch (level) {
    case Level::Fine: return "fine";
    case Level::Note: return "note";
    case Level::Trouble: return "trouble";
  }
  return "";
}

std::string name_hosts(const Report& report, const std::vector<int>& hosts) {
  constexpr size_t kMost = 6;
  const size_t shown = hosts.size() > kMost ? kMost - 1 : hosts.size();
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == hosts.size() ? " and " : ", ";
    text += report.hosts[static_cast<size_t>(hosts[i])].label;
  }
  if (shown < hosts.size()) text += " and " + std::to_string(hosts.size() - shown) + " more";
  return text;
}

std::string rate_text(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return with_unit(bytes_per_second / 1e9, "GB/s");
  return with_unit(bytes_per_second / 1e6, "MB/s");
}

std::string time_text(double ns) { return ns >= 1e6 ? with_unit(ns / 1e6, "ms") : with_unit(ns / 1e3, "us"); }

std::vector<Finding> judge(const Report& report) {
  std::vector<Finding> findings;
  judge_end(report, findings);
  judge_network(report, findings);
  judge_speeds(report, findings);
  judge_hosts(report, findings);
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) { return a.level > b.level; });
  return findings;
}

Level worst(const std::vector<Finding>& findings, int host) {
  Level level = Level::Fine;
  for (const Finding& finding : findings) {
    const bool counts = host < 0 || std::ranges::find(finding.hosts, host) != finding.hosts.end();
    if (counts) level = std::max(level, finding.level);
  }
  return level;
}

}  // namespace ccom::doctor
