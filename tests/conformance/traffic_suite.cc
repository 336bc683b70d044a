// SPDX-License-Identifier: Apache-2.0
//
// Every rank in a thread of its own: random all-to-all traffic against a model, and exchanges in which each side sleeps
// in wait() until the other has done something. Under ThreadSanitizer this shows that ranks share nothing but the
// transport.
#include <algorithm>
#include <deque>
#include <random>
#include <thread>

#include "tests/conformance/test_job.h"
#include "tests/harness/threads.h"

namespace ccom::conformance {
namespace {

// The messages of one ordered pair on one channel. Both sides compute them; that is the whole model.
struct Flow {
  uint64_t seed;
  std::vector<size_t> sizes;
};

Flow make_flow(uint64_t seed, Rank from, Rank to, int index, int messages) {
  Flow flow{seed * 1000003 + static_cast<uint64_t>((from * 64 + to) * 8 + index) * 4096, {}};
  std::mt19937_64 random(flow.seed);
  for (int k = 0; k < messages; ++k) {
    switch (random() % 16) {
      case 0: flow.sizes.push_back(0); break;
      case 1: flow.sizes.push_back(random() % 1000000); break;
      case 2:
      case 3: flow.sizes.push_back(random() % 70000); break;
      default: flow.sizes.push_back(random() % 600);
    }
  }
  return flow;
}

// One end of a flow: posts its messages in order, a random number ahead, and checks what arrives.
class End {
 public:
  End(Channel& channel, Flow flow, bool is_sender, Token base)
      : channel_(channel),
        flow_(std::move(flow)),
        is_sender_(is_sender),
        base_(base),
        buffers_(flow_.sizes.size()),
        sinks_(flow_.sizes.size()),
        is_complete_(flow_.sizes.size(), false) {}

  bool is_posted() const { return posted_ == flow_.sizes.size(); }
  bool is_done() const { return completed_ == flow_.sizes.size(); }
  size_t in_flight() const { return posted_ - completed_; }

  Status post_next() {
    const size_t k = posted_++;
    const uint64_t seed = flow_.seed + k;
    if (is_sender_) {
      buffers_[k] = payload(flow_.sizes[k], seed);
      return channel_.post_send({envelope(seed), buffers_[k], base_ + k});
    }
    if (k % 2 == 0) {
      buffers_[k].resize(flow_.sizes[k]);
      return channel_.post_receive({envelope(seed), flow_.sizes[k], buffers_[k].data(), nullptr, base_ + k});
    }
    sinks_[k] = std::make_unique<CheckingSink>(flow_.sizes[k]);
    return channel_.post_receive({envelope(seed), flow_.sizes[k], nullptr, sinks_[k].get(), base_ + k});
  }

  void complete(size_t k) {
    ASSERT_LT(k, posted_);
    ASSERT_FALSE(is_complete_[k]) << "message " << k << " completed twice";
    is_complete_[k] = true;
    ++completed_;
    if (!is_sender_) {
      const ConstBytes received = sinks_[k] ? sinks_[k]->bytes() : ConstBytes(buffers_[k]);
      EXPECT_TRUE(matches(received, flow_.seed + k)) << "message " << k << " of " << received.size() << " bytes";
      EXPECT_TRUE(!sinks_[k] || sinks_[k]->is_complete());
    }
    std::ranges::fill(buffers_[k], std::byte{0xFF});
    std::vector<std::byte>().swap(buffers_[k]);
    sinks_[k].reset();
  }

 private:
  Channel& channel_;
  const Flow flow_;
  const bool is_sender_;
  const Token base_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<std::unique_ptr<CheckingSink>> sinks_;
  std::vector<bool> is_complete_;
  size_t posted_ = 0;
  size_t completed_ = 0;
};

constexpr Token kTokensPerEnd = 1 << 16;

// What one rank's thread does: posts at random, makes progress, sometimes sleeps in wait(), until all its ends are
// done.
void run_rank(Transport& transport, std::deque<End>& ends, uint64_t seed) {
  std::mt19937_64 random(seed);
  Events events;
  size_t done = 0;
  const Deadline deadline = Deadline::after(kTimeout);
  while (done < ends.size()) {
    ASSERT_FALSE(deadline.passed()) << done << " of " << ends.size() << " flows are done";
    for (int i = 0; i < 4; ++i) {
      End& end = ends[random() % ends.size()];
      if (end.is_posted() || end.in_flight() > random() % 12) continue;
      ASSERT_EQ(end.post_next().message(), "");
    }
    events.completed.clear();
    ASSERT_EQ(transport.progress(events).message(), "");
    ASSERT_FALSE(events.mismatch.has_value()) << "with rank " << events.mismatch->peer;
    for (const Token token : events.completed) {
      End& end = ends.at(token / kTokensPerEnd);
      end.complete(token % kTokensPerEnd);
      done += end.is_done() ? 1 : 0;
    }
    if (events.completed.empty()) {
      random() % 8 == 0 ? transport.wait(std::chrono::microseconds(300)) : std::this_thread::yield();
    }
  }
}

void all_to_all(const Member& member, JobShape shape, int messages, uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << shape.ranks << " ranks");
  TestJob job(member, shape);
  for (const Status& status : job.connect()) ASSERT_TRUE(status.is_ok()) << status.message();
  run_ranks(shape.ranks, [&](Rank rank) {
    std::deque<End> ends;
    for (Rank peer = 0; peer < shape.ranks; ++peer) {
      for (int index = 0; peer != rank && index < shape.channels; ++index) {
        for (const bool is_sender : {true, false}) {
          const Flow flow = make_flow(seed, is_sender ? rank : peer, is_sender ? peer : rank, index, messages);
          ends.emplace_back(job.channel(rank, peer, index), flow, is_sender, ends.size() * kTokensPerEnd);
        }
      }
    }
    run_rank(job[rank], ends, seed + static_cast<uint64_t>(rank));
  });
}

// Runs progress() until `completions` have come, and wait() alone, without any polling, or no wait() at all; for
// threads.
void await(Transport& transport, size_t completions, bool sleeps = true) {
  Events events;
  const Deadline deadline = Deadline::after(kTimeout);
  while (events.completed.size() < completions) {
    ASSERT_EQ(transport.progress(events).message(), "");
    if (!sleeps) std::this_thread::yield();
    if (sleeps && events.completed.size() < completions) transport.wait(deadline.left());
    ASSERT_FALSE(deadline.passed()) << (sleeps ? "wait() slept through" : "nothing came");
  }
}

uint64_t seed_of_this_run() {
  const int32_t seed = testing::UnitTest::GetInstance()->random_seed();  // --gtest_random_seed
  return seed == 0 ? 20251 : static_cast<uint64_t>(seed);
}

}  // namespace

TEST_P(TransportConformance, TwoRanksExchangeRandomMessages) {
  all_to_all(GetParam(), {2, 4}, 150, seed_of_this_run());
}
TEST_P(TransportConformance, ThreeRanksExchangeRandomMessages) {
  all_to_all(GetParam(), {3, 2}, 80, seed_of_this_run() + 1);
}
TEST_P(TransportConformance, FiveRanksExchangeRandomMessages) {
  all_to_all(GetParam(), {5, 1}, 60, seed_of_this_run() + 2);
}

// Every hand-over needs a wake-up: one that gets lost hangs the test until its timeout is over.
TEST_P(TransportConformance, WaitReturnsForEveryArrivalOfAPingPong) {
  TestJob job(GetParam(), {.ranks = 2, .channels = 1});
  for (const Status& status : job.connect()) ASSERT_TRUE(status.is_ok()) << status.message();
  constexpr uint64_t kRounds = 500;
  const auto play = [&job](Rank me) {
    const Rank peer = 1 - me;
    std::vector<std::byte> received(8);
    for (uint64_t round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
      const auto sent = payload(8, round);
      job.receive(me, peer, 0, round, received, 2 * round);
      if (me == 1) await(job[me], 1);
      job.send(me, peer, 0, round, sent, 2 * round + 1);
      await(job[me], me == 1 ? 1 : 2);
      ASSERT_TRUE(matches(received, round));
    }
  };
  std::thread other([&play] { play(1); });
  play(0);
  other.join();
}

// A sender that outruns its receiver sleeps until there is room again; the receiver sleeps too, or only ever polls.
void outrun(const Member& member, bool receiver_sleeps) {
  TestJob job(member, {.ranks = 2, .channels = 1});
  for (const Status& status : job.connect()) ASSERT_TRUE(status.is_ok()) << status.message();
  constexpr size_t kMessages = 12;
  const auto sent = payload(1 << 20, 1);
  std::thread sender([&job, &sent] {
    for (Token k = 0; k < kMessages; ++k) job.send(0, 1, 0, k, sent, k);
    await(job[0], kMessages);
  });
  std::vector<std::byte> received(sent.size());
  for (Token k = 0; k < kMessages && !testing::Test::HasFailure(); ++k) {
    job.receive(1, 0, 0, k, received, k);
    await(job[1], 1, receiver_sleeps);
    EXPECT_TRUE(matches(received, 1));
  }
  sender.join();
}

TEST_P(TransportConformance, WaitReturnsWhenTheReceiverMakesRoom) { outrun(GetParam(), true); }
TEST_P(TransportConformance, WaitReturnsWhenAReceiverThatOnlyPollsMakesRoom) { outrun(GetParam(), false); }

}  // namespace ccom::conformance
