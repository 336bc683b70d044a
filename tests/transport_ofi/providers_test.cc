// SPDX-License-Identifier: Apache-2.0
//
// The same transport over every provider that runs on loopback: messages of all sizes in both directions arrive whole
// and in order, and everybody leaves in peace. A provider that is not installed is skipped, but for the one that must
// be there. `net` leaks memory of its own, so not under the address sanitizer; `shm` installs signal handlers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/harness/folder.h"
#include "tests/harness/resources.h"
#include "tests/harness/results.h"
#include "tests/transport_ofi/ofi_job.h"
#include "transports/ofi/fabric.h"
#include "transports/ofi/factory.h"

namespace ccom::ofi {
namespace {

class OfiProvider : public testing::TestWithParam<const char*> {
 protected:
  // False: the test has been skipped.
  static bool is_there(const OfiJob& job) {
    if (job.status().is_ok()) return true;
    EXPECT_STRNE(GetParam(), "tcp;ofi_rxm") << job.status().message();
    return false;
  }
};

// Between three ranks on two channels.
void carry_all_sizes(OfiJob& job) {
  const std::vector<size_t> sizes = {0, 1, 15, 16, 4096, 32640, 32641, 65280, 1'000'003, 3 << 20};
  std::vector<std::vector<std::byte>> sent, received;
  sent.reserve(1000);
  received.reserve(1000);
  for (Rank from = 0; from < 3; ++from) {
    for (Rank to = 0; to < 3; ++to) {
      if (from == to) continue;
      for (size_t i = 0; i < sizes.size(); ++i) {
        const int index = static_cast<int>(i % 2);
        const Envelope envelope{{i, static_cast<uint64_t>(from)}};
        sent.push_back(pattern(sizes[i], i));
        received.emplace_back(sizes[i]);
        ASSERT_TRUE(job.channel(from, to, index).post_send({envelope, sent.back(), i}).is_ok());
        ASSERT_TRUE(job.channel(to, from, index)
                        .post_receive({envelope, sizes[i], received.back().data(), nullptr, 100 + i})
                        .is_ok());
      }
    }
  }
  const size_t expected = 2 * 2 * sizes.size();  // two peers, sends and receives
  EXPECT_TRUE(job.step_until([&job, expected] {
    return job.report(0).completed.size() == expected && job.report(1).completed.size() == expected &&
           job.report(2).completed.size() == expected;
  }));
  for (Rank rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(job.report(rank).status.is_ok()) << job.report(rank).status.message();
  EXPECT_TRUE(sent == received);
}

TEST_P(OfiProvider, CarriesMessagesOfAllSizesBothWays) {
  OfiJob job({.ranks = 3, .channels = 2, .provider = GetParam(), .rails = {"127.0.0.1"}});
  if (!is_there(job)) GTEST_SKIP() << job.status().message();
  ASSERT_TRUE(job.connect_all());
  carry_all_sizes(job);
}

TEST_P(OfiProvider, DeliversWhatWasReportedCompleteAfterTheSenderHasGone) {
  OfiJob job({.provider = GetParam()});
  if (!is_there(job)) GTEST_SKIP() << job.status().message();
  ASSERT_TRUE(job.connect_all());
  const auto sent = pattern(100'000, 1);
  std::vector<std::byte> received(sent.size());
  ASSERT_TRUE(job.channel(0, 1).post_send({{}, sent, 1}).is_ok());
  ASSERT_TRUE(job.step_until([&job] { return job.report(0).completed.size() == 1; }));
  job.destroy(0);
  ASSERT_TRUE(job.channel(1, 0).post_receive({{}, received.size(), received.data(), nullptr, 2}).is_ok());
  EXPECT_TRUE(job.step_until([&job] { return job.report(1).completed.size() == 1; })) << job.report(1).status.message();
  EXPECT_TRUE(sent == received);
}

TEST_P(OfiProvider, WakesAWaiterWhenDataArrives) {
  OfiJob job({.provider = GetParam()});
  if (!is_there(job)) GTEST_SKIP() << job.status().message();
  ASSERT_TRUE(job.connect_all());
  const auto sent = pattern(1000, 1);
  std::vector<std::byte> received(sent.size());
  ASSERT_TRUE(job.channel(1, 0).post_receive({{}, received.size(), received.data(), nullptr, 2}).is_ok());
  job.step();
  const auto start = Clock::now();
  ASSERT_TRUE(job.channel(0, 1).post_send({{}, sent, 1}).is_ok());
  Events sender_events, events;
  ASSERT_TRUE(job[0].progress(sender_events).is_ok());
  while (events.completed.empty() && Clock::now() - start < kPatience) {
    job[1].wait(kPatience);
    ASSERT_TRUE(job[1].progress(events).is_ok());
    ASSERT_TRUE(job[0].progress(sender_events).is_ok());
  }
  EXPECT_LT(Clock::now() - start, kPatience / 2);
  EXPECT_TRUE(sent == received);
}

std::array<struct sigaction, 32> read_handlers() {
  std::array<struct sigaction, 32> handlers{};
  for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &handlers[static_cast<size_t>(number)]);
  return handlers;
}
const auto kHandlersAtStart = read_handlers();  // before any test has loaded a library

TEST_P(OfiProvider, LeavesSignalHandlersAlone) {
  OfiJob job({.provider = GetParam()});
  if (!is_there(job)) GTEST_SKIP() << job.status().message();
  ASSERT_TRUE(job.connect_all());
  const auto handlers = read_handlers();
  for (size_t number = 1; number < handlers.size(); ++number) {
    EXPECT_EQ(handlers[number].sa_handler, kHandlersAtStart[number].sa_handler) << strsignal(static_cast<int>(number));
  }
}

size_t resident_mib() {
  size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) >> 20;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Of rxm's pools and ours, between two transports in one process; by libfabric's own sizes 175 MiB.
TEST(OfiMemory, IsBounded) {
  const size_t before = resident_mib();
  OfiJob job({.provider = "tcp;ofi_rxm", .rails = {"127.0.0.1"}});
  ASSERT_TRUE(job.status().is_ok()) << job.status().message();
  ASSERT_TRUE(job.connect_all());
  const size_t taken = resident_mib() - before;
  std::printf("%zu MiB\n", taken);
  EXPECT_LT(taken, 120u);
}
#endif

std::string provider_name(const testing::TestParamInfo<const char*>& member) {
  std::string name = member.param;
  std::ranges::replace(name, ';', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Loopback, OfiProvider, testing::Values("tcp;ofi_rxm", "sockets", "udp;ofi_rxd"),
                         provider_name);
#ifndef __SANITIZE_ADDRESS__
INSTANTIATE_TEST_SUITE_P(LoopbackThatLeaks, OfiProvider, testing::Values("net"), provider_name);
#endif

// libfabric 1.17's shm crashes when it sends to an endpoint of the same process that was closed, as a farewell does; so
// nothing is closed here. It also sets signal handlers, which are taken back.
TEST(OfiShm, CarriesMessagesOfAllSizesBothWays) {
  const auto handlers = read_handlers();
  static auto* const job =
      new OfiJob({.ranks = 3, .channels = 2, .provider = "shm", .rails = {""}, .bind_address = ""});
  if (!job->status().is_ok()) GTEST_SKIP() << job->status().message();
  ASSERT_TRUE(job->connect_all());
  carry_all_sizes(*job);
  for (int number = 1; number < 32; ++number) sigaction(number, &handlers[static_cast<size_t>(number)], nullptr);
}

TEST(OfiRails, OnTwoAddressesShareWhatIsLarge) {
  OfiJob job({.rails = {"127.0.0.1", "127.0.0.2"}});
  ASSERT_TRUE(job.status().is_ok()) << job.status().message();
  ASSERT_TRUE(job.connect_all());
  constexpr size_t kBytes = 16 << 20;
  ASSERT_TRUE(job.carry(0, 1, kBytes));
  ASSERT_EQ(job[0].written_bytes().size(), 2u);
  for (const uint64_t bytes : job[0].written_bytes()) EXPECT_GT(bytes, kBytes / 8);
}

TEST(OfiThreads, TheMandatoryProviderRunsNone) {
  const int before = running_threads();
  OfiJob job({});
  ASSERT_TRUE(job.connect_all());
  // The threads of connect_all() have ended, but /proc may show them for a moment.
  for (const Deadline deadline = Deadline::after(kPatience); running_threads() > before && !deadline.passed();)
    job.step();
  EXPECT_EQ(running_threads(), before);
}

TEST(OfiFabric, RefusesWildcardsAndNamesWhatIsMissing) {
  for (const char* wildcard : {"0.0.0.0", "::"}) {
    EXPECT_EQ(open_fabric("tcp;ofi_rxm", wildcard).error().code(), Code::InvalidArgument);
  }
  EXPECT_EQ(open_fabric("tcp;ofi_rxm", "").error().code(), Code::InvalidArgument);
  const Status failure = error_of(open_fabric("no_such_provider", "127.0.0.1"));
  EXPECT_EQ(failure.code(), Code::NotSupported);
  EXPECT_NE(failure.message().find("no_such_provider"), std::string::npos);
}

TEST(OfiFabric, SeesAnEfaDeviceByItsDriver) {
  const TemporaryFolder folder;
  const std::string& root = folder.path();
  const std::filesystem::path devices = folder / "sys/class/infiniband";
  EXPECT_FALSE(has_efa_device(root));
  std::filesystem::create_directories(devices / "mlx5_0/device");
  std::filesystem::create_symlink("../../../bus/pci/drivers/mlx5_core", devices / "mlx5_0/device/driver");
  EXPECT_FALSE(has_efa_device(root)) << "another driver's device";
  std::filesystem::create_directories(devices / "rdmap0s6/device");
  std::filesystem::create_symlink("../../../bus/pci/drivers/efa", devices / "rdmap0s6/device/driver");
  EXPECT_TRUE(has_efa_device(root));
}

TEST(OfiFabric, ListsNoDomainsOfAProviderThatIsNotUsable) { EXPECT_TRUE(list_domains("no_such_provider").empty()); }

TEST(OfiFabric, ObeysEveryMemoryModeOrRefusesIt) {
  for (int i = 0; i < 32; ++i) {
    const int mode = ((i & 1) ? FI_MR_LOCAL : 0) | ((i & 2) ? FI_MR_VIRT_ADDR : 0) | ((i & 4) ? FI_MR_ALLOCATED : 0) |
                     ((i & 8) ? FI_MR_PROV_KEY : 0) | ((i & 16) ? FI_MR_ENDPOINT : 0);
    const auto rules = memory_rules(mode);
    ASSERT_TRUE(rules) << mode;
    EXPECT_EQ(rules->register_buffers, (i & 1) != 0);
    EXPECT_EQ(rules->back_with_pages, (i & 4) != 0);
    EXPECT_EQ(rules->choose_keys, (i & 8) == 0);
    EXPECT_EQ(rules->bind_to_endpoint, (i & 16) != 0);
    EXPECT_EQ(rules->has_virtual_addresses, (i & 2) != 0);
  }
  EXPECT_EQ(memory_rules(FI_MR_RAW).error().code(), Code::NotSupported);
  EXPECT_EQ(memory_rules(FI_MR_MMU_NOTIFY).error().code(), Code::NotSupported);
}

}  // namespace
}  // namespace ccom::ofi
