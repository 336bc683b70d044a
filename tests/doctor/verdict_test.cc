// SPDX-License-Identifier: Apache-2.0
//
// What is concluded from which report: from a healthy one, with one thing broken at a time.
#include "tools/doctor/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/doctor/print.h"
#include "tools/doctor/report_json.h"
#include "tools/doctor/speeds.h"

namespace ccom::doctor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kRate = 118e6;

RankReport healthy_rank(int rank, const std::string& host) {
  RankReport report{.rank = rank, .host_id = host, .host_name = host, .kernel = "Linux 6.1", .ccom_version = "0.1.0"};
  report.libfabric = "1.17";
  report.providers = {"shm", "tcp"};
  report.interfaces = {"lo 127.0.0.1", "eth0 10.0.0." + std::to_string(rank + 1)};
  report.addresses = {
      {.interface = "eth0", .address = "10.0.0." + std::to_string(rank + 1), .port = 40000, .mtu = 1500}};
  report.cpus = 8;
  report.open_files = 4096;
  report.locked_bytes = 8 << 20;
  report.shm_bytes = int64_t{8} << 30;
  report.available_bytes = int64_t{16} << 30;
  return report;
}

// Hosts "a", "b", ... of one rank each, every pair alike.
Report healthy(int hosts) {
  Report report{.nranks = hosts, .rendezvous = "10.0.0.1:21000 (CCOM_URL)"};
  std::vector<RankReport> ranks;
  for (int i = 0; i < hosts; ++i) ranks.push_back(healthy_rank(i, std::string(1, static_cast<char>('a' + i))));
  report.hosts = group_hosts(ranks);
  for (HostEntry& host : report.hosts) host.clock_ms = 1'000'000;
  report.versions.assign(static_cast<size_t>(hosts), "0.1.0");
  for (int i = 0; i < hosts; ++i) {
    for (int j = 0; j < hosts; ++j) {
      if (i != j) report.reaches.push_back({.from = i, .to = j, .connects = true, .answers = true, .carries = true});
      if (i < j) report.speeds.push_back({i, j, 40e3, kRate, kRate, "tcp", ""});
    }
  }
  report.job = {.tried = true, .transports = "tcp", .start_ms = 20, .small_us = 90, .large_us = 9000};
  return report;
}

Reach& reach(Report& report, int from, int to) {
  return *std::ranges::find_if(report.reaches, [=](const Reach& one) { return one.from == from && one.to == to; });
}
void block(Report& report, int from, int to, const char* why = "Connection timed out") {
  reach(report, from, to) = {.from = from, .to = to, .failure = why};
}
// The rate from one host to another.
double& rate(Report& report, int from, int to) {
  Speed& speed = *std::ranges::find_if(
      report.speeds, [=](const Speed& one) { return one.a == std::min(from, to) && one.b == std::max(from, to); });
  return from < to ? speed.there_bytes_per_second : speed.back_bytes_per_second;
}

std::vector<std::string> texts(const Report& report, Level level = Level::Trouble) {
  std::vector<std::string> found;
  for (const Finding& finding : judge(report)) {
    if (finding.level == level) found.push_back(finding.text);
  }
  return found;
}
std::vector<int> levels(const Report& report) {
  const std::vector<Finding> findings = judge(report);
  std::vector<int> found;
  for (int host = 0; host < static_cast<int>(report.hosts.size()); ++host) {
    found.push_back(static_cast<int>(worst(findings, host)));
  }
  return found;
}

TEST(Verdict, SaysNothingOfHealthyHosts) {
  for (const int hosts : {1, 2, 3, 8}) EXPECT_THAT(judge(healthy(hosts)), IsEmpty()) << hosts;
  EXPECT_THAT(to_text(healthy(3), {}), AllOf(HasSubstr("3 ranks on 3 hosts"), HasSubstr("Verdict: fine.")));
}

TEST(Verdict, NamesThePairThatCannotConnectAndItsDirection) {
  Report report = healthy(4);
  block(report, 0, 1);
  EXPECT_THAT(texts(report), ElementsAre(AllOf(HasSubstr("a cannot connect to b at 10.0.0.2 (eth0): Connection timed"),
                                               HasSubstr("although b can connect to a"))));
  EXPECT_THAT(levels(report), ElementsAre(2, 2, 0, 0));
  block(report, 1, 0, "No route to host");
  EXPECT_THAT(texts(report), ElementsAre(AllOf(HasSubstr("a and b cannot reach each other"), HasSubstr("No route"))));
}

TEST(Verdict, BlamesTheOneHostThatNobodyReaches) {
  Report incoming = healthy(3);
  for (const int from : {0, 1}) block(incoming, from, 2);
  EXPECT_THAT(texts(incoming), ElementsAre(HasSubstr("No other host can connect to c at 10.0.0.3 (eth0)")));
  EXPECT_THAT(levels(incoming), ElementsAre(0, 0, 2));
  Report outgoing = healthy(3);
  for (const int to : {1, 2}) block(outgoing, 0, to);
  EXPECT_THAT(texts(outgoing), ElementsAre(HasSubstr("a can connect to no other host, b at 10.0.0.2")));
  Report both = healthy(3);
  for (const int other : {0, 2}) block(both, 1, other), block(both, other, 1);
  EXPECT_THAT(texts(both), ElementsAre(HasSubstr("b and the others cannot reach each other")));
  EXPECT_THAT(levels(both), ElementsAre(0, 2, 0));
}

TEST(Verdict, RecognisesLoopback) {
  Report report = healthy(3);
  report.hosts[1].report.addresses[0] = {.interface = "lo", .address = "127.0.0.1", .port = 1, .mtu = 65536};
  for (const int other : {0, 2}) block(report, other, 1, "Connection refused");
  EXPECT_THAT(texts(report),
              ElementsAre(AllOf(HasSubstr("b would carry data on loopback"), HasSubstr("eth0 10.0.0.2"))));
}

TEST(Verdict, TellsLargeFramesThatVanish) {
  Report report = healthy(2);
  report.hosts[0].report.addresses[0].mtu = 9001;
  EXPECT_THAT(texts(report), IsEmpty());
  EXPECT_THAT(texts(report, Level::Note),
              ElementsAre(HasSubstr("MTUs of the data interfaces differ: 1500 on b, 9001 on a")));
  reach(report, 0, 1).carries = false;
  reach(report, 0, 1).failure = "Connection timed out";
  EXPECT_THAT(texts(report), ElementsAre(AllOf(HasSubstr("Small messages pass from a to b"), HasSubstr("64 KiB do not"),
                                               HasSubstr("9001 on a, 1500 on b"))));
}

TEST(Verdict, MentionsFurtherInterfacesThatWereNamed) {
  Report report = healthy(2);
  report.hosts[1].report.filter_origin = "CCOM_SOCKET_IFNAME";
  report.hosts[1].report.addresses.push_back({.interface = "eth1", .address = "10.1.0.2", .port = 1, .mtu = 1500});
  report.reaches.push_back({.from = 0, .to = 1, .address = 1, .failure = "Connection timed out"});
  EXPECT_THAT(texts(report), ElementsAre(HasSubstr("b at 10.1.0.2 (eth1), which CCOM_SOCKET_IFNAME lists as well")));
}

TEST(Verdict, FindsTheSlowHostAmongThree) {
  Report report = healthy(3);
  for (const int other : {0, 1}) rate(report, 2, other) = kRate / 10;
  EXPECT_THAT(texts(report),
              ElementsAre(HasSubstr("c sends to everybody at 12 MB/s at most; the other hosts reach 118")));
  EXPECT_THAT(levels(report), ElementsAre(0, 0, 2));
  for (const int other : {0, 1}) rate(report, other, 2) = kRate / 10;
  EXPECT_THAT(texts(report), ElementsAre(HasSubstr("c sends to"), HasSubstr("c receives from everybody at 12 MB/s")));
}

TEST(Verdict, FindsTheSlowPairAmongGoodHosts) {
  Report report = healthy(4);
  rate(report, 1, 3) = kRate / 10;
  EXPECT_THAT(texts(report), ElementsAre(HasSubstr("From b to d ccom carries 12 MB/s; the typical pair 118 MB/s")));
  rate(report, 1, 3) = kRate / 2;
  EXPECT_THAT(texts(report), IsEmpty()) << "others may use the machine as well";
}

TEST(Verdict, WantsSlowPairsMeasuredAgain) {
  Report report = healthy(4);
  EXPECT_THAT(slow_pairs(report), IsEmpty());
  rate(report, 3, 1) = kRate / 10;
  EXPECT_THAT(slow_pairs(report), ElementsAre(Pair(1, 3)));
  for (const int other : {0, 1, 3}) rate(report, 2, other) = kRate / 10;
  EXPECT_THAT(slow_pairs(report), ElementsAre(Pair(0, 2), Pair(1, 2), Pair(1, 3), Pair(2, 3)));
  report.speeds[1].failure = "send: rank 1 is gone";
  EXPECT_THAT(slow_pairs(report), ElementsAre(Pair(1, 2), Pair(1, 3), Pair(2, 3))) << "what failed is not slow";
}

TEST(Verdict, ComparesTheDirectionsOfTwoHosts) {
  Report report = healthy(2);
  rate(report, 1, 0) = kRate / 10;
  EXPECT_THAT(texts(report),
              ElementsAre(HasSubstr("From b to a ccom carries 12 MB/s, in the other direction 118 MB/s")));
}

TEST(Verdict, ComparesWithWhatTheInterfacePromises) {
  Report report = healthy(2);
  for (HostEntry& host : report.hosts) host.report.addresses[0].bytes_per_second = 1.25e9;
  EXPECT_THAT(texts(report, Level::Note), ElementsAre(HasSubstr("nominal speed is 1.2 GB/s"), HasSubstr("b to a")));
  for (HostEntry& host : report.hosts) host.report.addresses[0].bytes_per_second = 12.5e9;
  EXPECT_THAT(judge(report), IsEmpty()) << "one pair of ranks is not expected to fill 100 Gbit/s";
}

TEST(Verdict, NotesLatePairs) {
  Report report = healthy(3);
  report.speeds[1].latency_ns = 2e6;
  EXPECT_THAT(texts(report, Level::Note), ElementsAre(HasSubstr("between a and c takes 2.0 ms")));
}

TEST(Verdict, ReportsWhatCcomItselfSays) {
  Report report = healthy(2);
  report.speeds[0].failure = "send: rank 1 is gone";
  report.job.failure = "allreduce: timed out";
  EXPECT_THAT(texts(report), ElementsAre(HasSubstr("ccom between them failed: send: rank 1 is gone"),
                                         HasSubstr("communicator of all ranks failed: allreduce")));
}

TEST(Verdict, JudgesLimits) {
  const auto with = [](auto change) {
    Report report = healthy(2);
    change(report.hosts[1].report);
    const auto findings = judge(report);
    return findings.empty() ? std::string("nothing") : findings.front().text;
  };
  EXPECT_THAT(with([](RankReport& b) { b.open_files = 64; }), HasSubstr("b lets a process open 64 files"));
  EXPECT_THAT(with([](RankReport& b) { b.shm_bytes = 64 << 20; }), HasSubstr("b has 64 MiB in /dev/shm"));
  EXPECT_THAT(with([](RankReport& b) { b.available_bytes = 100 << 20; }), HasSubstr("b has 100 MiB of free memory"));
  EXPECT_THAT(with([](RankReport& b) { b.filter_failure = "CCOM_SOCKET_IFNAME=\"x\": no"; }),
              HasSubstr("b has no data address: CCOM_SOCKET_IFNAME=\"x\""));
  EXPECT_THAT(with([](RankReport& b) { b.kernel = "Linux 5.10"; }), HasSubstr("Kernels differ: Linux 5.10 on b"));
  EXPECT_THAT(with([](RankReport& b) { b.libfabric = ""; }),
              HasSubstr("Versions of libfabric differ: none on b; 1.17 on a"));
  EXPECT_THAT(with([](RankReport& b) { b.providers_failure = "no answer"; }), HasSubstr("providers are unknown"));
  EXPECT_EQ(with([](RankReport& b) { b.ptrace_scope = 1; }), "nothing") << "one rank reads nobody's memory";
}

TEST(Verdict, JudgesEfa) {
  Report report = healthy(2);
  for (HostEntry& host : report.hosts) {
    host.report.instance_type = "trn1.32xlarge";
    host.report.efa_devices = 8;
    host.report.locked_bytes = -1;
    host.report.free_hugepages = 512;
    host.report.providers.emplace_back("efa");
  }
  EXPECT_THAT(judge(report), IsEmpty());
  report.hosts[1].report.locked_bytes = 64 << 10;
  EXPECT_THAT(texts(report), ElementsAre(HasSubstr("b lets a process lock 64 KiB")));
  report.hosts[1].report.locked_bytes = -1;
  report.hosts[1].report.providers = {"tcp"};
  EXPECT_THAT(texts(report), ElementsAre(HasSubstr("b has 8 EFA devices, but libfabric's efa provider")));
  report.hosts[1].report.efa_devices = 0;
  EXPECT_THAT(texts(report), ElementsAre(HasSubstr("Numbers of EFA devices differ: 0 on b; 8 on a")));
  EXPECT_THAT(texts(report, Level::Note), ElementsAre(HasSubstr("b is a trn1.32xlarge, but none of its EFA")));
}

TEST(Verdict, ComparesVersionsAndClocks) {
  Report report = healthy(3);
  report.versions[2] = "0.2.0";
  EXPECT_THAT(texts(report), ElementsAre(AllOf(HasSubstr("0.1.0 (rank 0)"), HasSubstr("0.2.0 (rank 2)"))));
  report.versions[2] = "0.1.0";
  report.hosts[1].clock_ms += 37'000;
  EXPECT_THAT(texts(report, Level::Note), ElementsAre(HasSubstr("are 37 s apart")));
}

TEST(Verdict, NamesWhoEndedIt) {
  Report report = healthy(3);
  report.ended = "ranks 1 did not come";
  report.missing = {1};
  EXPECT_THAT(texts(report), ElementsAre(AllOf(HasSubstr("ended early: ranks 1 did"), HasSubstr("Their hosts: b"))));
  EXPECT_THAT(levels(report), ElementsAre(0, 2, 0));
}

TEST(Report, KeepsHostsOfOneNameApart) {
  std::vector<RankReport> ranks = {healthy_rank(0, "x"), healthy_rank(1, "x"), healthy_rank(2, "y"),
                                   healthy_rank(3, "z")};
  ranks[3].host_name = "y";
  const std::vector<HostEntry> hosts = group_hosts(ranks);
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].label, "x");
  EXPECT_THAT(hosts[0].ranks, ElementsAre(0, 1));
  EXPECT_EQ(hosts[1].label, "y (rank 2)");
  EXPECT_EQ(hosts[2].label, "y (rank 3)");
}

TEST(Report, SurvivesJson) {
  Report report = healthy(3);
  block(report, 0, 1);
  const auto parsed = nlohmann::json::parse(json_report(report, judge(report)));
  EXPECT_EQ(parsed["verdict"], "trouble");
  EXPECT_EQ(parsed["hosts"][1]["verdict"], "trouble");
  const std::optional<Report> again = from_message<Report>(parsed["report"].dump());
  ASSERT_TRUE(again);
  EXPECT_EQ(json_report(*again, judge(report)), json_report(report, judge(report)));
  EXPECT_FALSE(from_message<Report>("{"));
}

TEST(Rounds, PairEveryHostWithEveryOtherOnce) {
  for (int hosts = 1; hosts <= 9; ++hosts) {
    std::vector<Pair> all;
    for (const std::vector<Pair>& round : rounds_of_pairs(hosts)) {
      std::vector<int> busy;
      for (const Pair& pair : round) {
        EXPECT_LT(pair.first, pair.second);
        EXPECT_LT(pair.second, hosts);
        busy.insert(busy.end(), {pair.first, pair.second});
        all.push_back(pair);
      }
      std::ranges::sort(busy);
      EXPECT_EQ(std::ranges::adjacent_find(busy), busy.end()) << "a host is in two pairs of a round";
    }
    std::ranges::sort(all);
    EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
    EXPECT_EQ(all.size(), static_cast<size_t>(hosts * (hosts - 1) / 2));
  }
}

}  // namespace
}  // namespace ccom::doctor
