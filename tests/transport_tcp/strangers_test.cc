// SPDX-License-Identifier: Apache-2.0
//
// Crowds of strangers at a rank's port while it meets its peer.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/base_network/strangers.h"
#include "tests/harness/environment.h"
#include "tests/harness/resources.h"
#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {
namespace {

class ManyStrangers : public ::testing::TestWithParam<bool> {
 protected:
  ManyStrangers() { renew(); }
  void renew() {
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
    const auto start = Clock::now();
    for (const Status& status : tcp::meet(*ranks_[0], *ranks_[1])) EXPECT_TRUE(status.is_ok()) << status.message();
    return Clock::now() - start;
  }

 private:
  std::unique_ptr<Transport> ranks_[2];
};
INSTANTIATE_TEST_SUITE_P(Tls, ManyStrangers, ::testing::Bool());

TEST_P(ManyStrangers, TwoThousandIdleAndTwoThousandLoudDoNotDelayAMeeting) {
  EXPECT_TRUE(test::is_sooner_than_a_stranger([this] {
    renew();
    const test::Strangers idle(port(), 2000, ""), loud(port(), 2000, std::string(400, '\xA5'));
    EXPECT_TRUE(idle.are_in() && loud.are_in());
    return meet();
  }));
}

// Those whose first bytes look right must not take memory or time either.
TEST_P(ManyStrangers, WhoBeginAGreetingDoNotDelayAMeeting) {
  const std::string first = GetParam() ? "\x16\x03\x01\x01" : "CSHK";
  const std::string garbage =
      GetParam() ? "\x16\x03\x01" + std::string(1, '\0') + "\x04\x01xyz" : "CSHK" + std::string(200, '\1');
  EXPECT_TRUE(test::is_sooner_than_a_stranger([&] {
    renew();
    const test::Strangers begin(port(), 1000, first), wrong(port(), 1000, garbage);
    EXPECT_TRUE(begin.are_in() && wrong.are_in());
    return meet();
  }));
}

TEST_P(ManyStrangers, DoNotKeepAPeerAwayByTakingAllDescriptors) {
  const test::Strangers idle(port(), 500, "");
  ASSERT_TRUE(idle.are_in());
  const ScopedLimit few(RLIMIT_NOFILE, 64);
  EXPECT_LT(meet(), std::chrono::milliseconds(3000));
}

class RepeatingStrangers : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Tls, RepeatingStrangers, ::testing::Bool());

// While rank 2 is missing, somebody repeats what rank 1 has said.
TEST_P(RepeatingStrangers, GetNoAnswerAndCostAtMostFourKiBEach) {
  constexpr size_t kTimes = 60;
  const Secret key = Secret::random();
  std::unique_ptr<Transport> ranks[3];
  for (const Rank rank : {0, 1, 2}) {
    TcpConfig config = config_of(rank, key);
    config.tls = GetParam();
    ranks[rank] = make(config);
  }
  const std::string address = ranks[0]->address();
  std::promise<std::string> recorded;
  Proxy proxy(address, [&recorded](uint64_t position, Bytes bytes) {
    if (position == 0) recorded.set_value(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return true;
  });
  Status results[3];
  std::thread first([&] {
    const Peer peers[] = {{1, ranks[1]->address(), 1}, {2, ranks[2]->address(), 1}};
    results[0] = ranks[0]->connect(peers, Deadline::after(kPatience));
  });
  const auto join = [&](Rank rank, const std::string& at) {
    const Peer peer{0, at, 1};
    results[rank] = ranks[rank]->connect(std::span(&peer, 1), Deadline::after(kPatience));
  };
  join(1, proxy.address() + (GetParam() ? " tls" : ""));
  const std::string hello = recorded.get_future().get();
  ASSERT_EQ(hello[0], GetParam() ? 22 : 'C');
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // rank 0 has finished with rank 1
  const size_t before = allocated_bytes();
  std::vector<RawSocket> strangers;
  for (size_t i = 0; i < kTimes; ++i) {
    strangers.push_back(RawSocket::to(address));
    ASSERT_TRUE(strangers.back().write(hello));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // rank 0 has read what they say
  EXPECT_LE(allocated_bytes(), before + kTimes * 4096);
  for (const RawSocket& stranger : strangers) {
    std::byte byte;
    EXPECT_EQ(stranger.read({&byte, 1}), 0u) << "it gets no answer";
  }
  join(2, address);
  first.join();
  for (const Status& status : results) EXPECT_TRUE(status.is_ok()) << status.message();
}

}  // namespace
}  // namespace ccom::tcp
