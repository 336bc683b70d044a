// SPDX-License-Identifier: Apache-2.0
//
// Monitors with ranks as threads of this process: errors reach every rank of every host with one text, listeners are
// called soon, leaving is no death, and nothing is left behind. Deaths of processes are in process_test.cc.
#include "liveness/monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "tests/harness/resources.h"
#include "tests/harness/threads.h"
#include "tests/harness/waiting.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using test::Cluster;
using test::ConnectedCluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status aborted() { return error(Code::Aborted, "rank 1 was told to abort").with_peers({1}).with_cure("do not"); }

TEST(Monitor, WorksForARankThatIsAlone) {
  Cluster cluster({1});
  EXPECT_EQ(cluster[0].addresses().control, "");
  ASSERT_TRUE(cluster.connect().is_ok());
  EXPECT_TRUE(cluster[0].check().is_ok());
  EXPECT_FALSE(cluster[0].failed());
  EXPECT_EQ(cluster[0].report(aborted()).message(), aborted().message());
  EXPECT_TRUE(cluster[0].failed());
}

TEST(Monitor, RefusesAConfigurationThatMakesNoSense) {
  Cluster cluster({2});
  std::vector<std::byte> memory(64);
  MonitorConfig config = cluster.config_of(0);
  EXPECT_EQ(Monitor::create(config, memory, true).error().code(), Code::InvalidArgument);  // board too small
  config.host_index = 1;
  EXPECT_EQ(Monitor::create(config, memory, true).error().code(), Code::InvalidArgument);
  config = cluster.config_of(0);
  config.rank = 9;
  EXPECT_EQ(Monitor::create(config, memory, true).error().code(), Code::InvalidArgument);
}

TEST(Monitor, NeverListensOnAllInterfaces) {
  Cluster cluster({1, 1});
  for (const char* wildcard : {"0.0.0.0", "::", "", "not an address"}) {
    MonitorConfig config = cluster.config_of(0);
    config.bind_address = wildcard;
    alignas(64) std::byte memory[32768]{};
    const auto monitor = Monitor::create(config, memory, true);
    ASSERT_FALSE(monitor) << wildcard;
    EXPECT_EQ(monitor.error().code(), Code::ConfigError) << wildcard;
  }
}

TEST(Monitor, TellsAllRanksOfAHostTheFirstError) {
  ConnectedCluster cluster({8});
  EXPECT_EQ(cluster[5].report(aborted()).message(), aborted().message());
  EXPECT_EQ(cluster[3].report(Status(Code::Timeout, "too late")).message(), aborted().message());
  for (Rank r = 0; r < 8; ++r) {
    EXPECT_TRUE(cluster[r].failed());
    EXPECT_EQ(cluster[r].check().message(), aborted().message());
    EXPECT_THAT(cluster[r].status().peers(), ElementsAre(1));
    EXPECT_EQ(cluster[r].status().cure(), "do not");
  }
}

TEST(Monitor, FloodsAnErrorToAllHostsWithOneText) {
  for (const std::vector<int>& layout : {std::vector{1, 1}, {2, 2}, {3, 1, 2}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    for (const Rank speaker : {0, 1}) {
      ConnectedCluster cluster(layout);
      const Status status = cluster[speaker].report(aborted());
      ASSERT_TRUE(cluster.all_fail(5000));
      for (Rank r = 0; r < cluster.ranks(); ++r) {
        EXPECT_EQ(cluster[r].status().message(), status.message());
        EXPECT_EQ(cluster[r].status().code(), Code::Aborted);
      }
    }
  }
}

TEST(Monitor, CallsEveryListenerOnceAndSoon) {
  ConnectedCluster cluster({3, 2});
  std::vector<std::promise<Clock::time_point>> called(5);
  std::vector<std::atomic<int>> calls(5);
  for (Rank r = 0; r < 5; ++r)
    cluster[r].on_failure([&calls, &called, r] {
      if (calls[static_cast<size_t>(r)]++ == 0) called[static_cast<size_t>(r)].set_value(Clock::now());
    });
  const auto start = Clock::now();
  (void)cluster[4].report(aborted());
  std::chrono::nanoseconds slowest{0};
  for (auto& promise : called) {
    auto when = promise.get_future();
    ASSERT_EQ(when.wait_for(std::chrono::seconds(2)), std::future_status::ready);
    slowest = std::max(slowest, std::chrono::nanoseconds(when.get() - start));
  }
  std::printf("slowest listener after %.2f ms\n", static_cast<double>(slowest.count()) * 1e-6);
  std::promise<void> late;  // a listener that comes after the failure
  cluster[0].on_failure([&late] { late.set_value(); });
  EXPECT_EQ(late.get_future().wait_for(std::chrono::seconds(2)), std::future_status::ready);
  for (auto& count : calls) EXPECT_EQ(count, 1);
}

TEST(Monitor, LeavingIsNoDeath) {
  ConnectedCluster cluster({2, 2, 1}, 300);
  for (const Rank leaver : {2, 0, 3}) {
    cluster.destroy(leaver);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(cluster[1].check().is_ok()) << cluster[1].status().message();
      ASSERT_TRUE(cluster[4].check().is_ok()) << cluster[4].status().message();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

// A rank that reports and leaves at once must still be heard.
TEST(Monitor, AnErrorReportedJustBeforeLeavingArrives) {
  for (int i = 0; i < 20; ++i) {
    ConnectedCluster cluster({1, 1, 1});
    (void)cluster[0].report(aborted());
    cluster.destroy(0);
    ASSERT_TRUE(cluster.all_fail(2000));
    EXPECT_EQ(cluster[1].status().message(), aborted().message());
    EXPECT_EQ(cluster[2].status().message(), aborted().message());
  }
}

TEST(Monitor, ConnectNamesTheRanksThatAreMissing) {
  Cluster cluster({1, 1, 1});
  auto addresses = cluster.addresses();
  Status outcome;
  std::thread two([&] { (void)cluster[2].connect(addresses, Deadline::after_ms(2000)); });
  outcome = cluster[0].connect(addresses, Deadline::after_ms(300));
  two.join();
  EXPECT_EQ(outcome.code(), Code::Timeout);
  EXPECT_THAT(outcome.peers(), ElementsAre(1));
  EXPECT_THAT(outcome.message(), HasSubstr("rank 1 did not connect"));
  // Its listener is closed now: rank 1 says whom it could not reach, where and why.
  outcome = cluster[1].connect(addresses, Deadline::after_ms(200));
  EXPECT_THAT(outcome.peers(), ElementsAre(0));
  EXPECT_THAT(outcome.message(), HasSubstr(addresses[0].control + ": Connection refused"));
}

TEST(Monitor, AnErrorEndsConnectBeforeItsDeadline) {
  Cluster cluster({2, 1});
  std::thread reporter([&] { (void)cluster[1].report(aborted()); });
  const auto start = Clock::now();
  const Status outcome = cluster[0].connect(cluster.addresses(), Deadline::after_ms(30000));
  reporter.join();
  EXPECT_EQ(outcome.message(), aborted().message());
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

TEST(Monitor, LeavesNoDescriptorsAndNoThreadsBehind) {
  { Cluster warm_up({2, 1}); }
  const int descriptors = open_descriptors(), threads = running_threads();
  for (int i = 0; i < 200; ++i) {
    Cluster cluster(i % 2 == 0 ? std::vector{2} : std::vector{2, 1});
    if (i % 4 == 1) {
      ASSERT_TRUE(cluster.connect().is_ok());
    }
    if (i % 3 == 0) (void)cluster[1].report(aborted());
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LE(running_threads(), threads);  // one of the warm-up's, or of a test before, may have ended since
}

TEST(Monitor, SharesOneThreadAmongAllMonitorsOfAProcess) {
  std::thread([] {}).join();  // with a process's first thread a sanitizer starts one of its own
  const int before = running_threads();
  Cluster first({4}), second({2, 2});
  EXPECT_LE(running_threads(), before + 1);  // one of a test before may have ended since
}

TEST(Monitor, LeavesAtOnce) {
  ConnectedCluster cluster({2, 2});
  for (Rank r = 0; r < 4; ++r) {
    const auto start = Clock::now();
    cluster.destroy(r);
    EXPECT_LT(Clock::now() - start, std::chrono::milliseconds(1000));  // typically below one
  }
}

// More boards than FUTEX_WAITV takes at once.
TEST(Monitor, ManyCommunicatorsOfOneProcessAllHear) {
  std::vector<std::unique_ptr<Cluster>> clusters;
  for (int i = 0; i < 70; ++i) clusters.push_back(std::make_unique<Cluster>(std::vector{2}));
  std::atomic<int> calls{0};
  for (auto& cluster : clusters) (*cluster)[1].on_failure([&calls] { ++calls; });
  for (auto& cluster : clusters) (void)(*cluster)[0].report(aborted());
  EXPECT_TRUE(wait_until([&calls] { return calls == 70; })) << calls;
}

TEST(Monitor, TakesReportsFromManyThreadsWhileOthersLeave) {
  for (int round = 0; round < 10; ++round) {
    ConnectedCluster cluster({4, 4});
    run_ranks(8, [&](Rank r) {
      for (int i = 0; i < 20; ++i) (void)cluster[r].check();
      if (r == 2) return cluster.destroy(r);
      (void)cluster[r].report(error(Code::Aborted, "from %d", r).with_peers({r}));
      EXPECT_FALSE(cluster[r].status().is_ok());
    });
  }
}

}  // namespace
}  // namespace ccom
