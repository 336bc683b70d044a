// SPDX-License-Identifier: Apache-2.0
//
// Findings about speed, compared with the interfaces' nominal speed and with other pairs.
//
// A host is slow in a direction if even its best pair is far below the median host; so one bad host of three is
// identified, although it makes two of three pairs slow. Pairs of two good hosts are then compared with each other.
#include <algorithm>
#include <map>
#include <set>

#include "tools/doctor/verdict.h"

namespace ccom::doctor {
namespace {

// Thresholds of slowness: on shared machines a factor of two can be noise.
constexpr double kSlow = 1.0 / 3;
constexpr double kOneSided = 1.0 / 8;
constexpr double kLate = 4;
constexpr double kLateNs = 200e3;
// Above this speed a single pair of ranks is not expected to saturate the link.
constexpr double kFillable = 10e9 / 8;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

struct Flow {
  int from;
  int to;
  double rate;
};

class Speeds {
 public:
  Speeds(const Report& report, std::vector<Finding>& findings) : report_(report), findings_(findings) {
    for (const Speed& speed : report.speeds) {
      if (!speed.failure.empty()) continue;
      flows_.push_back({speed.a, speed.b, speed.there_bytes_per_second});
      flows_.push_back({speed.b, speed.a, speed.back_bytes_per_second});
    }
  }

  void judge() {
    for (const Speed& speed : report_.speeds) {
      if (speed.failure.empty()) continue;
      add(Level::Trouble, {speed.a, speed.b},
          label(speed.a) + " and " + label(speed.b) + " can connect, but ccom between them failed: " + speed.failure,
          "");
    }
    if (report_.hosts.size() > 2) {
      judge_hosts(&Flow::from, "sends to everybody");
      judge_hosts(&Flow::to, "receives from everybody");
      judge_pairs();
      judge_latencies();
    } else {
      judge_directions();
    }
    for (const Flow& flow : flows_) judge_promise(flow);
  }

 private:
  const HostEntry& entry(int host) const { return report_.hosts[static_cast<size_t>(host)]; }
  const std::string& label(int host) const { return entry(host).label; }
  void add(Level level, std::vector<int> hosts, std::string text, std::string cure) {
    findings_.push_back({level, std::move(hosts), std::move(text), std::move(cure)});
  }
  bool is_explained(const Flow& flow) const { return explained_.contains({flow.from, flow.to}); }

  void judge_hosts(int Flow::*end, const char* what) {
    std::map<int, double> best;
    for (const Flow& flow : flows_) best[flow.*end] = std::max(best[flow.*end], flow.rate);
    std::vector<double> rates;
    for (const auto& [host, rate] : best) rates.push_back(rate);
    const double typical = median(rates);
    for (const auto& [host, rate] : best) {
      if (rate >= kSlow * typical) continue;
      add(Level::Trouble, {host},
          label(host) + " " + what + " at " + rate_text(rate) + " at most; the other hosts reach " + rate_text(typical),
          "check its cable or instance type, traffic shaping, and other traffic on its interface");
      for (const Flow& flow : flows_) {
        if (flow.*end == host) explained_.insert({flow.from, flow.to});
      }
    }
  }

  void judge_pairs() {
    std::vector<double> rates;
    for (const Flow& flow : flows_) {
      if (!is_explained(flow)) rates.push_back(flow.rate);
    }
    const double typical = median(rates);
    for (const Flow& flow : flows_) {
      if (is_explained(flow) || flow.rate >= kSlow * typical) continue;
      explained_.insert({flow.from, flow.to});
      add(Level::Trouble, {flow.from, flow.to},
          "From " + label(flow.from) + " to " + label(flow.to) + " ccom carries " + rate_text(flow.rate) +
              "; the typical pair " + rate_text(typical),
          "check the path between the two: a slow link, a longer route, another placement group");
    }
  }

  // With two hosts, the only comparison is the other direction.
  void judge_directions() {
    for (const Flow& flow : flows_) {
      const auto back = std::ranges::find_if(
          flows_, [&flow](const Flow& other) { return other.from == flow.to && other.to == flow.from; });
      if (back == flows_.end() || flow.rate >= kOneSided * back->rate) continue;
      add(Level::Trouble, {flow.from, flow.to},
          "From " + label(flow.from) + " to " + label(flow.to) + " ccom carries " + rate_text(flow.rate) +
              ", in the other direction " + rate_text(back->rate),
          "check traffic shaping and the duplex mode of the two interfaces");
    }
  }

  void judge_latencies() {
    std::vector<double> all;
    for (const Speed& speed : report_.speeds) {
      if (speed.failure.empty()) all.push_back(speed.latency_ns);
    }
    const double typical = median(all);
    for (const Speed& speed : report_.speeds) {
      if (!speed.failure.empty() || speed.latency_ns <= kLate * typical + kLateNs) continue;
      add(Level::Note, {speed.a, speed.b},
          "A small message between " + label(speed.a) + " and " + label(speed.b) + " takes " +
              time_text(speed.latency_ns) + "; between the typical pair " + time_text(typical),
          "");
    }
  }

  void judge_promise(const Flow& flow) {
    const auto promise_of = [this](int host) {
      const auto& addresses = entry(host).report.addresses;
      return addresses.empty() ? 0 : addresses.front().bytes_per_second;
    };
    const double promise = std::min(promise_of(flow.from), promise_of(flow.to));
    if (promise <= 0 || promise > kFillable || is_explained(flow) || flow.rate >= promise / 2) return;
    add(Level::Note, {flow.from, flow.to},
        "From " + label(flow.from) + " to " + label(flow.to) + " ccom carries " + rate_text(flow.rate) +
            "; the interfaces' nominal speed is " + rate_text(promise),
        "check for other load on the network or the cores");
  }

  const Report& report_;
  std::vector<Finding>& findings_;
  std::vector<Flow> flows_;
  std::set<std::pair<int, int>> explained_;
};

}  // namespace

std::vector<std::pair<int, int>> slow_pairs(const Report& report) {
  std::vector<Finding> findings;
  Speeds(report, findings).judge();
  std::vector<std::pair<int, int>> slow;
  for (const Speed& speed : report.speeds) {
    const auto concerns = [&speed](const Finding& finding) {
      return finding.level == Level::Trouble &&
             std::ranges::all_of(finding.hosts, [&speed](int host) { return host == speed.a || host == speed.b; });
    };
    if (speed.failure.empty() && std::ranges::any_of(findings, concerns)) slow.emplace_back(speed.a, speed.b);
  }
  return slow;
}

void judge_speeds(const Report& report, std::vector<Finding>& findings) {
  Speeds(report, findings).judge();
  if (!report.job.failure.empty()) {
    findings.push_back({Level::Trouble, {}, "A communicator of all ranks failed: " + report.job.failure, ""});
  }
}

}  // namespace ccom::doctor
