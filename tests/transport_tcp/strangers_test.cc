// SPDX-License-Identifier: Apache-2.0
//
// Crowds of strangers at a rank's port while it meets its peer.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "tests/base_network/strangers.h"
#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {
namespace {

class ManyStrangers : public ::testing::TestWithParam<bool> {
 protected:
  ManyStrangers() {
    const Secret key = Secret::random();
    for (const Rank rank : {0, 1}) {
      TcpConfig config = config_of(rank, key, 2);
      config.tls = GetParam();
      ranks_[rank] = make(config);
    }
  }
  uint16_t port() const { return test::port_in(ranks_[0]->address()); }
  // The time that meeting took.
  std::chrono::nanoseconds meet() {
    Status results[2];
    const auto start = Clock::now();
    std::thread other([&] {
      const Peer peer{0, ranks_[0]->address(), 1};
      results[1] = ranks_[1]->connect(std::span(&peer, 1), Deadline::after(kPatience));
    });
    const Peer peer{1, ranks_[1]->address(), 1};
    results[0] = ranks_[0]->connect(std::span(&peer, 1), Deadline::after(kPatience));
    other.join();
    for (const Status& status : results) EXPECT_TRUE(status.is_ok()) << status.message();
    return Clock::now() - start;
  }

 private:
  std::unique_ptr<Transport> ranks_[2];
};
INSTANTIATE_TEST_SUITE_P(Tls, ManyStrangers, ::testing::Bool());

TEST_P(ManyStrangers, TwoThousandIdleAndTwoThousandLoudDoNotDelayAMeeting) {
  const test::Strangers idle(port(), 2000, ""), loud(port(), 2000, std::string(400, '\xA5'));
  ASSERT_TRUE(idle.are_in() && loud.are_in());
  EXPECT_LT(meet(), std::chrono::milliseconds(1500));
}

// Those whose first bytes look right must not take memory or time either.
TEST_P(ManyStrangers, WhoBeginAGreetingDoNotDelayAMeeting) {
  const test::Strangers begin(port(), 1000, GetParam() ? "\x16\x03\x01\x01" : "CSHK");
  const test::Strangers wrong(
      port(), 1000,
      GetParam() ? "\x16\x03\x01" + std::string(1, '\0') + "\x04\x01xyz" : "CSHK" + std::string(200, '\1'));
  ASSERT_TRUE(begin.are_in() && wrong.are_in());
  EXPECT_LT(meet(), std::chrono::milliseconds(1500));
}

TEST_P(ManyStrangers, DoNotKeepAPeerAwayByTakingAllDescriptors) {
  const test::Strangers idle(port(), 500, "");
  ASSERT_TRUE(idle.are_in());
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit before = limit;
  limit.rlim_cur = 64;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_LT(meet(), std::chrono::milliseconds(3000));
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace ccom::tcp
