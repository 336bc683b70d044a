// SPDX-License-Identifier: Apache-2.0
//
// A rail dies between two hosts that have several: every message arrives, whole, once and in order; without the last
// one there is an error. Skipped where namespaces cannot be made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <random>

#include "base/log.h"
#include "tests/harness/waiting.h"
#include "tests/transport_tcp/raw.h"
#include "tests/transport_tcp/two_hosts.h"

namespace ccom::tcp {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr milliseconds kSilence{2000};  // rails are given up after a quarter of it

// What is logged while it lives, at level warn.
class Logged {
 public:
  Logged() { set_log_function(&Logged::take, this); }
  ~Logged() { set_log_function(nullptr, nullptr); }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  static void take(LogLevel level, const char* message, void* user) {
    if (level > LogLevel::Warn) return;
    auto* const self = static_cast<Logged*>(user);
    const std::lock_guard lock(self->mutex_);
    self->text_ += std::string(message) + "\n";
  }
  std::mutex mutex_;
  std::string text_;
};

struct Shape {
  int links = 2;
  int streams = 1;
  bool tls = false;
  bool on_use = false;  // connected when the first messages are
};

TwoHosts::Adapt over(const Shape& shape) {
  return [shape](TcpConfig& config, int host) {
    config.silence = kSilence;
    config.streams = shape.streams;
    config.tls = shape.tls;
    config.on_use = shape.on_use;
    config.bind_addresses.clear();
    for (int link = 0; link < shape.links; ++link) config.bind_addresses.push_back(TwoHosts::ipv4(host, link));
  };
}

// The messages that a rank sends, the same on both hosts.
std::vector<std::byte> message_of(Rank sender, int number) {
  std::mt19937 random(static_cast<unsigned>(2 * number + sender));
  const size_t sizes[] = {random() % 100, random() % 20'000, random() % 300'000, random() % 3'000'000};
  std::vector<std::byte> bytes(number % 50 == 0 ? 0 : sizes[random() % 4]);
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const auto word = static_cast<uint32_t>(random());
    std::memcpy(&bytes[i], &word, 4);
  }
  return bytes;
}

// One rank's side of an exchange in both directions, with a few messages under way at a time. Every third is received
// by a sink; buffers are overwritten once they may be.
class Exchange {
 public:
  Exchange(Rank rank, Transport& transport, Channel& channel) : rank_(rank), transport_(transport), channel_(channel) {}

  // The same number of messages in both directions; `between` is called after some.
  Status run(int messages, const std::function<void(int done)>& between) {
    const auto start = Clock::now();
    while (received_ < messages || sent_ < messages) {
      while (posted_ < messages && posted_ - std::min(sent_, received_) < kUnderWay) CCOM_TRY(post());
      Events events;
      CCOM_TRY(transport_.progress(events));
      for (const Token token : events.completed) CCOM_TRY(take(token));
      if (events.completed.empty()) transport_.wait(milliseconds(1));
      if (!events.completed.empty() && between) between(received_);
      if (Clock::now() - start > kPatience)
        return error(Code::Timeout, "rank %d: %d sent, %d received", rank_, sent_, received_);
    }
    return {};
  }

 private:
  static constexpr int kUnderWay = 6;
  struct Slot {
    std::vector<std::byte> sent, received;
    std::unique_ptr<CopyingSink> sink;
  };

  Status post() {
    Slot& slot = slots_[posted_ % kUnderWay];
    slot.sent = message_of(rank_, posted_);
    const size_t size_bytes = message_of(1 - rank_, posted_).size();
    slot.received.assign(size_bytes, std::byte{0});
    slot.sink = posted_ % 3 == 0 ? std::make_unique<CopyingSink>(size_bytes) : nullptr;
    const Envelope envelope{{static_cast<uint64_t>(posted_), 0, 0, 0, 0}};
    const auto token = static_cast<Token>(2 * posted_);
    std::byte* const target = slot.sink ? nullptr : slot.received.data();
    CCOM_TRY(channel_.post_receive({envelope, size_bytes, target, slot.sink.get(), token + 1}));
    CCOM_TRY(channel_.post_send({envelope, slot.sent, token}));
    ++posted_;
    return {};
  }

  Status take(Token token) {
    const auto number = static_cast<int>(token / 2);
    Slot& slot = slots_[number % kUnderWay];
    int& next = token % 2 == 0 ? sent_ : received_;
    if (number != next++) return error(Code::InternalError, "rank %d: %d is complete too early", rank_, number);
    if (token % 2 == 0) {
      std::ranges::fill(slot.sent, std::byte{0xee});
      return {};
    }
    const std::vector<std::byte>& got = slot.sink ? slot.sink->bytes : slot.received;
    const std::vector<std::byte> expected = message_of(1 - rank_, number);
    if (got != expected) return error(Code::InternalError, "rank %d: message %d is wrong", rank_, number);
    if (slot.sink && slot.sink->consumed_bytes != expected.size())
      return error(Code::InternalError, "rank %d: pieces of message %d came twice", rank_, number);
    return {};
  }

  const Rank rank_;
  Transport& transport_;
  Channel& channel_;
  std::array<Slot, kUnderWay> slots_;
  int posted_ = 0, sent_ = 0, received_ = 0;
};

int losses_in(const std::string& log) {
  int losses = 0;
  for (size_t at = log.find("degraded"); at != log.npos; at = log.find("degraded", at + 1)) ++losses;
  return losses;
}

enum class Harm { Silence, Cut };

// Both ranks exchange messages; after some, the link dies.
void lose_rail(const Shape& shape, Harm harm, int link, int messages = 120) {
  TwoHosts hosts(std::vector<int>(static_cast<size_t>(shape.links), 0));
  if (!hosts.trouble().empty()) GTEST_SKIP() << hosts.trouble();
  Logged logged;
  hosts.run(over(shape), [&](Rank rank, Transport& transport, Channel& channel) {
    bool is_done = false;
    const auto between = [&](int done) {
      if (rank == 0 || done < messages / 4 || std::exchange(is_done, true)) return;
      harm == Harm::Silence ? hosts.silence_host_1(link) : hosts.cut(link);
    };
    EXPECT_EQ(Exchange(rank, transport, channel).run(messages, between).message(), "");
  });
  const std::string address = "10.77." + std::to_string(link) + ".";
  EXPECT_THAT(logged.text(), HasSubstr("degraded: a rail to rank"));
  EXPECT_THAT(logged.text(), HasSubstr(address));
  EXPECT_LE(losses_in(logged.text()), 2) << "one of each host";
}

// Host 1 no longer sends on it: what host 0 sends arrives, and is sent again because nobody says so.
TEST(Rails, OneThatIsSilentInOneDirectionLosesAndRepeatsNothing) {
  lose_rail({}, Harm::Silence, 0);
  lose_rail({}, Harm::Silence, 1);
}

TEST(Rails, OneThatIsCutLosesNothing) {
  lose_rail({}, Harm::Cut, 0);
  lose_rail({}, Harm::Cut, 1);
}

TEST(Rails, OneOfFourWithSeveralConnectionsEachLosesNothing) {
  lose_rail({.links = 4, .streams = 8}, Harm::Silence, 0);
  lose_rail({.links = 4, .streams = 8}, Harm::Cut, 2);
}

TEST(Rails, OneInsideTlsLosesNothing) {
  lose_rail({.tls = true}, Harm::Silence, 0, 60);
  lose_rail({.tls = true}, Harm::Cut, 1, 60);
}

TEST(Rails, OfPairsThatAreConnectedOnUseLoseNothing) {
  lose_rail({.on_use = true}, Harm::Silence, 0);
  lose_rail({.links = 4, .streams = 8, .on_use = true}, Harm::Cut, 2);
  lose_rail({.tls = true, .on_use = true}, Harm::Cut, 1, 60);
}

// Before the pair is connected: it does without.
void begin_without_rail(const Shape& shape, Harm harm, int link) {
  TwoHosts hosts(std::vector<int>(static_cast<size_t>(shape.links), 0));
  if (!hosts.trouble().empty()) GTEST_SKIP() << hosts.trouble();
  harm == Harm::Silence ? hosts.silence_host_1(link) : hosts.cut(link);
  Logged logged;
  hosts.run(over(shape), [&](Rank rank, Transport& transport, Channel& channel) {
    EXPECT_EQ(Exchange(rank, transport, channel).run(60, {}).message(), "");
  });
  // Within a second after another loss of this process a line waits.
  wait_until([&logged] { return !logged.text().empty(); });
  EXPECT_THAT(logged.text(), HasSubstr("degraded: a rail to rank"));
  EXPECT_THAT(logged.text(), HasSubstr("cannot be connected"));
  EXPECT_LE(losses_in(logged.text()), 2) << "one of each host";
}

TEST(Rails, ThatAreDeadWhenAPairIsConnectedOnUseAreLeftOut) {
  begin_without_rail({.on_use = true}, Harm::Silence, 0);
  begin_without_rail({.on_use = true}, Harm::Cut, 1);
  begin_without_rail({.links = 4, .streams = 8, .tls = true, .on_use = true}, Harm::Cut, 2);
}

// Each comes back, half a message in its pipe, before the other goes.
TEST(Rails, AreUsedAgainOnceTheyAnswer) {
  TwoHosts hosts({0, 0});
  if (!hosts.trouble().empty()) GTEST_SKIP() << hosts.trouble();
  Logged logged;
  constexpr int kMessages = 2000;
  std::atomic<int> ended = 0;
  std::thread weather;
  hosts.run(over({}), [&](Rank rank, Transport& transport, Channel& channel) {
    if (rank == 0) {
      weather = std::thread([&] {
        for (int i = 0; i < 4; ++i) {
          std::this_thread::sleep_for(milliseconds(300));
          hosts.silence_host_1(i % 2);
          std::this_thread::sleep_for(milliseconds(1500));
          hosts.end_silence_of_host_1(i % 2);
          std::this_thread::sleep_for(milliseconds(3000));
        }
        ended = 1;
      });
    }
    Status status;
    int rounds = 0;
    // Both ranks make the same number of rounds: the last one is agreed on by a message.
    for (bool goes_on = true; goes_on && status.is_ok(); ++rounds) {
      status = Exchange(rank, transport, channel).run(kMessages / 50, {});
      std::byte over{static_cast<unsigned char>(ended.load())}, heard{};
      if (!status.is_ok()) break;
      const bool is_good = rank == 0 ? channel.post_send({{}, {&over, 1}, 1}).is_ok()
                                     : channel.post_receive({{}, 1, &heard, nullptr, 1}).is_ok();
      status = drive(transport, is_good ? 1 : 0).status;
      goes_on = (rank == 0 ? over : heard) == std::byte{0};
    }
    EXPECT_TRUE(status.is_ok()) << "rank " << rank << ", round " << rounds << ": " << status.message();
  });
  weather.join();
  EXPECT_THAT(logged.text(), HasSubstr("is in use again"));
}

TEST(Rails, WithoutTheLastOneThereIsAnError) {
  TwoHosts hosts({0, 0});
  if (!hosts.trouble().empty()) GTEST_SKIP() << hosts.trouble();
  hosts.run(over({}), [&](Rank rank, Transport& transport, Channel& channel) {
    int silenced = 0;
    const auto between = [&](int done) {
      if (rank == 1 && silenced < 2 && done > 30 * (silenced + 1)) hosts.silence_host_1(silenced++);
    };
    const auto start = Clock::now();
    const Status status = Exchange(rank, transport, channel).run(100000, between);
    EXPECT_EQ(status.code(), Code::RemoteError) << status.message();
    EXPECT_THAT(status.peers(), ::testing::ElementsAre(1 - rank));
    EXPECT_LT(Clock::now() - start, kPatience);
  });
}

// A peer that leaves is no rail that dies, and nothing says so.
TEST(Rails, ThatEndWithTheirPeerAreItsEnd) {
  TwoHosts hosts({0, 0});
  if (!hosts.trouble().empty()) GTEST_SKIP() << hosts.trouble();
  Logged logged;
  hosts.run(over({}), [&](Rank rank, Transport& transport, Channel& channel) {
    const auto between = [&](int done) {
      if (rank == 1 && done >= 30) transport.stop();
    };
    const Status status = Exchange(rank, transport, channel).run(100000, between);
    if (rank == 0) {
      EXPECT_EQ(status.code(), Code::RemoteError) << status.message();
      const auto closed = HasSubstr("the peer has closed the connection"), lost = HasSubstr("connection lost");
      EXPECT_THAT(status.message(), AnyOf(closed, lost));
    }
  });
  EXPECT_THAT(logged.text(), Not(HasSubstr("degraded")));
}

// Complete, and lost: care() alone sends it again.
TEST(Rails, SendAgainWhatIsCompleteWhileNobodyMakesProgress) {
  TwoHosts hosts({0, 0});
  if (!hosts.trouble().empty()) GTEST_SKIP() << hosts.trouble();
  std::atomic<bool> has_come = false;
  hosts.run(over({}), [&](Rank rank, Transport& transport, Channel& channel) {
    std::byte byte{static_cast<unsigned char>(rank)};
    if (rank == 0) {
      ASSERT_TRUE(channel.post_receive({{}, 1, &byte, nullptr, 1}).is_ok());
      EXPECT_TRUE(drive(transport, 1).status.is_ok());
      EXPECT_EQ(byte, std::byte{1});
      has_come = true;
      return;
    }
    hosts.silence_host_1(0);
    ASSERT_TRUE(channel.post_send({{}, {&byte, 1}, 1}).is_ok());
    byte = std::byte{77};
    ASSERT_TRUE(drive(transport, 1).status.is_ok());
    const auto start = Clock::now();
    for (; !has_come && Clock::now() - start < kPatience; std::this_thread::sleep_for(milliseconds(20))) {
      if (transport.needs_care()) transport.care();
    }
  });
  EXPECT_TRUE(has_come);
}

}  // namespace
}  // namespace ccom::tcp
