// SPDX-License-Identifier: Apache-2.0
//
// Control connections with CCOM_TLS=1: what somebody between two hosts sees of them, and whether the hosts still learn
// of errors and of silence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>

#include "liveness/sockets.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using test::Cluster;
using ::testing::HasSubstr;

// Passes one connection on, and keeps a copy of what it carries. Can stop, with both sides connected.
class ManInTheMiddle {
 public:
  explicit ManInTheMiddle(std::string target) : target_(std::move(target)), listener_(*listen_on("127.0.0.1", {})) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  std::string address() const { return *address_of(listener_); }
  void fall_silent() { is_silent_ = true; }
  // Ends.
  std::string seen() {
    thread_.request_stop();
    thread_.join();
    return seen_;
  }

 private:
  void run(const std::stop_token& stop) {
    pollfd arrival{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&arrival, 1, 10) <= 0)
      if (stop.stop_requested()) return;
    const Descriptor child(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const Descriptor parent = *start_connect(target_);
    pollfd ends[] = {{.fd = child.get(), .events = POLLIN, .revents = 0},
                     {.fd = parent.get(), .events = POLLIN, .revents = 0}};
    while (!stop.stop_requested()) {
      if (is_silent_ || ::poll(ends, 2, 10) <= 0) continue;
      for (const int i : {0, 1}) {
        char piece[4096];
        const ssize_t size = ::recv(ends[i].fd, piece, sizeof piece, MSG_DONTWAIT);
        if (size == 0) return;
        if (size < 0) continue;
        seen_.append(piece, static_cast<size_t>(size));
        (void)::send(ends[1 - i].fd, piece, static_cast<size_t>(size), MSG_NOSIGNAL);
      }
    }
  }

  const std::string target_;
  const Descriptor listener_;
  std::string seen_;
  std::atomic<bool> is_silent_{false};
  std::jthread thread_;
};

constexpr char kText[] = "a text that is nobody else's business";

// Heartbeats for some time, then an error; what was seen of them.
std::string overhear(bool tls) {
  Cluster cluster({1, 1}, 400, tls);
  std::vector<Monitor::Addresses> addresses = cluster.addresses();
  ManInTheMiddle middle(addresses[0].control);
  addresses[0].control = middle.address();
  EXPECT_EQ(cluster.connect(addresses).message(), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // for a failure that must not come
  EXPECT_FALSE(cluster[0].failed() || cluster[1].failed());
  (void)cluster[0].report(error(Code::Aborted, kText).with_peers({0}));
  EXPECT_TRUE(cluster.all_fail(5000));
  EXPECT_EQ(cluster[1].status().message(), kText);
  return middle.seen();
}

TEST(ControlTls, ShowsNothingOfAHandshakeOrAFrame) {
  const std::string heartbeat("\1\0\0\0\0\0\0\0", 8), greeting = "CSHK";
  const std::string open = overhear(false);
  for (const std::string& part : {heartbeat, greeting, std::string(kText)}) EXPECT_THAT(open, HasSubstr(part));
  const std::string closed = overhear(true);
  EXPECT_GT(closed.size(), open.size() / 2);
  for (const std::string& part : {heartbeat, greeting, std::string(kText).substr(0, 8)})
    EXPECT_EQ(closed.find(part), std::string::npos) << part;
}

// What a round of agreement of two ranks shows somebody at both ports.
std::string overhear_agreement(bool tls) {
  Cluster cluster({1, 1}, 2000, tls);
  std::vector<Monitor::Addresses> addresses = cluster.addresses();
  ManInTheMiddle first(addresses[0].agreement), second(addresses[1].agreement);
  addresses[0].agreement = first.address();
  addresses[1].agreement = second.address();
  EXPECT_EQ(cluster.connect(addresses).message(), "");
  const auto agree = [&cluster](Rank rank) {
    ConsensusTerms terms{.call = 7, .flags = 3, .payload = {}};
    terms.payload[0] = 0x6e61626f6479;  // whose bytes are looked for
    const auto found = cluster[rank].agree(terms, {}, Deadline::after_ms(20000));
    EXPECT_TRUE(found) << found.error().message();
  };
  std::jthread other([&] { agree(1); });
  agree(0);
  other.join();
  return first.seen() + second.seen();
}

TEST(ControlTls, ShowsNothingOfAnAgreement) {
  const std::string open = overhear_agreement(false), closed = overhear_agreement(true);
  EXPECT_GT(closed.size(), 100U);
  for (const std::string part : {"CSHK", "ydoban"}) {
    EXPECT_THAT(open, HasSubstr(part));
    EXPECT_EQ(closed.find(part), std::string::npos) << part;
  }
}

TEST(ControlTls, NoticesAHostThatFallsSilent) {
  Cluster cluster({1, 1}, 300, true);
  std::vector<Monitor::Addresses> addresses = cluster.addresses();
  ManInTheMiddle middle(addresses[0].control);
  addresses[0].control = middle.address();
  ASSERT_TRUE(cluster.connect(addresses).is_ok());
  middle.fall_silent();
  EXPECT_TRUE(cluster.all_fail(10000));
  EXPECT_THAT(cluster[0].status().peers(), ::testing::ElementsAre(1));
  EXPECT_THAT(cluster[1].status().peers(), ::testing::ElementsAre(0));
}

// Three levels of hosts, two trees.
TEST(ControlTls, CarriesErrorsOverTheWholeTree) {
  Cluster cluster({2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1}, 3000, true);
  ASSERT_EQ(cluster.connect(30000).message(), "");
  const Rank last = cluster.ranks() - 1;
  (void)cluster[last].report(error(Code::Aborted, kText).with_peers({last}));
  EXPECT_TRUE(cluster.all_fail(10000));
  EXPECT_EQ(cluster[0].status().message(), kText);
}

}  // namespace
}  // namespace ccom
