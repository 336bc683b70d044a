// SPDX-License-Identifier: Apache-2.0
//
// A thread that waits for a message may wake the thread that sleeps in a transport, and the communicator be destroyed
// between its decision and the waking: the transport must be there until it has woken.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <thread>

#include "messages/messages.h"
#include "tests/harness/waiting.h"
#include "tests/liveness/cluster.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

struct SilentChannel final : Channel {
  Status post_send(const Send&) override { return {}; }
  Status post_receive(const Receive&) override { return {}; }
};

// Nothing ever arrives. Holds the chosen thread in wake().
class SilentTransport final : public Transport {
 public:
  std::string_view name() const override { return "silent"; }
  std::string address() const override { return {}; }
  Status connect(std::span<const Peer>, const WaitLimit&) override { return {}; }
  Result<Channel*> channel(Rank, int) override { return &channel_; }
  Status progress(Events&) override { return {}; }
  void wait(std::chrono::nanoseconds) override {
    sleeps = true;
    std::this_thread::sleep_for(5ms);
    sleeps = false;
  }
  void wake() override {
    if (std::this_thread::get_id() != held_thread) return;
    is_held = true;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return may_go_; });
  }
  void stop() override {}
  uint64_t memory_bytes() const override { return 0; }

  void let_go() {
    const std::lock_guard lock(mutex_);
    may_go_ = true;
    changed_.notify_all();
  }
  Channel* any_channel() { return &channel_; }

  std::atomic<bool> sleeps{false}, is_held{false};
  std::atomic<std::thread::id> held_thread{};

 private:
  SilentChannel channel_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool may_go_ = false;
};

TEST(MessagesClose, WaitsForWhoeverWakesTheSleeper) {
  test::Cluster cluster({2});
  SilentTransport transport;
  MessageRoutes routes;
  routes.transports = {&transport};
  routes.by_peer = {{}, {0, transport.any_channel(), transport.any_channel()}};
  Messages messages(std::move(routes), cluster[0], WaitPolicy{}, [](Status status, bool) { return status; });
  ASSERT_TRUE(messages.open().is_ok());
  std::byte place{};
  MessageRequest request;
  request.data = &place;
  request.bytes = 1;
  request.peer = 1;
  request.timeout_ms = 60'000;
  const auto message = std::make_shared<Message>(request);
  ASSERT_TRUE(messages.post(message).is_ok());

  std::thread driver([&] { messages.wait(*message, std::nullopt); });
  std::thread waker([&] {
    transport.held_thread = std::this_thread::get_id();
    while (!message->is_complete() && !transport.is_held) {
      if (transport.sleeps) messages.wait(*message, Deadline::after(1ms));
    }
  });
  EXPECT_TRUE(wait_until([&] { return transport.is_held.load(); }));
  auto closed = std::async(std::launch::async, [&] { messages.close(); });
  EXPECT_EQ(closed.wait_for(200ms), std::future_status::timeout)
      << "closed while a thread was about to use a transport";
  transport.let_go();
  EXPECT_EQ(closed.wait_for(30s), std::future_status::ready);
  driver.join();
  waker.join();
  EXPECT_EQ(message->status().code(), Code::Aborted);
}

}  // namespace
}  // namespace ccom
