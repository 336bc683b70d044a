// SPDX-License-Identifier: Apache-2.0
//
// The contract of transports/transport.h, sentence by sentence. One thread drives all ranks here, so each test decides
// what happens before what; traffic_suite.cc gives every rank its own thread.
#include "tests/conformance/transport_suite.h"

#include <sys/socket.h>

#include <filesystem>
#include <string>

#include "tests/conformance/test_job.h"

namespace ccom::conformance {
namespace {

constexpr size_t kSizes[] = {0, 1, 7, 16, 4096, kMiB + 3, 9 * kMiB};

int listening_sockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int listening = 0;
    socklen_t length = sizeof(listening);
    const int fd = std::stoi(entry.path().filename());
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) == 0 && listening != 0) ++count;
  }
  return count;
}

}  // namespace

TEST_P(TransportConformance, HasANameAndAShortAddress) {
  TestJob job(GetParam(), {.ranks = 2, .channels = 1});
  EXPECT_FALSE(job[0].name().empty());
  EXPECT_LE(job[0].address().size(), 1024u);
  for (const Status& status : job.connect()) EXPECT_TRUE(status.is_ok()) << status.message();
  EXPECT_LT(job[0].memory_bytes(), uint64_t{1} << 32);
}

TEST_P(TransportConformance, NothingListensOnceAllAreConnected) {
  if (GetParam().may_listen_after_connect) GTEST_SKIP() << "its library keeps a listener";
  const int before = listening_sockets();
  const auto job = connected(GetParam(), {.ranks = 3, .channels = 2});
  EXPECT_EQ(listening_sockets(), before);
}

TEST_P(TransportConformance, UnknownRanksAndChannelsAreInvalidArguments) {
  const auto job = connected(GetParam(), {.ranks = 3, .channels = 2});
  for (const Rank stranger : {3, 1000, -1, 0}) {
    const auto channel = (*job)[0].channel(stranger, 0);
    ASSERT_FALSE(channel.has_value()) << "rank " << stranger;
    EXPECT_EQ(channel.error().code(), Code::InvalidArgument);
  }
  for (const int index : {-1, 2, kMaxChannels}) {
    const auto channel = (*job)[0].channel(1, index);
    ASSERT_FALSE(channel.has_value()) << "index " << index;
    EXPECT_EQ(channel.error().code(), Code::InvalidArgument);
  }
  for (const int index : {0, 1}) EXPECT_TRUE((*job)[0].channel(2, index).has_value());
}

// On a slow or busy machine those who are there may not have met before a short deadline; then they rightly name each
// other too, and are given a longer one.
TEST_P(TransportConformance, ConnectEndsAtItsDeadlineAndNamesWhoIsMissing) {
  std::vector<Status> results;
  const auto is_right = [&results](Rank rank) {
    return results[static_cast<size_t>(rank)].peers() == std::vector<Rank>{2};
  };
  for (const int patience_ms : {400, 2000, 10000}) {
    const std::chrono::milliseconds timeout(patience_ms);
    TestJob job(GetParam(), {.ranks = 4, .channels = 1});
    const auto start = Clock::now();
    results = job.connect(timeout, {2});
    EXPECT_LT(Clock::now() - start, timeout + std::chrono::seconds(5));
    for (const Rank rank : {0, 1, 3}) {
      ASSERT_FALSE(results[static_cast<size_t>(rank)].is_ok())
          << "rank " << rank << " connected to a rank that was not there";
    }
    if (is_right(0) && is_right(1) && is_right(3)) return;
  }
  for (const Rank rank : {0, 1, 3}) {
    const Status& status = results[static_cast<size_t>(rank)];
    EXPECT_EQ(status.peers(), std::vector<Rank>{2}) << "rank " << rank << ": " << status.message();
  }
}

// At the start: another rank has died meanwhile.
TEST_P(TransportConformance, ConnectEndsWhenWaitingIsOfNoUse) {
  TestJob job(GetParam(), {.ranks = 2, .channels = 1});
  int asked = 0;
  const auto start = Clock::now();
  const Status status =
      job[0].connect(job.peers_of(0), {Deadline::after(std::chrono::seconds(60)), [&asked] { return ++asked == 3; }});
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(status.peers(), std::vector<Rank>{1}) << status.message();
  EXPECT_EQ(asked, 3);
}

TEST_P(TransportConformance, EverySizeArrivesInItsTarget) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 2});
  Token token = 0;
  for (const size_t size_bytes : kSizes) {
    for (const int index : {0, 1}) {
      for (const Rank from : {0, 1}) {
        const Rank to = 1 - from;
        const auto sent = payload(size_bytes, ++token);
        constexpr size_t kGuard = 32;
        std::vector<std::byte> memory(size_bytes + 2 * kGuard, std::byte{0xA5});
        const Bytes target = Bytes(memory).subspan(kGuard, size_bytes);
        const size_t completions[] = {job->report(0).completed.size() + 1, job->report(1).completed.size() + 1};
        job->receive(to, from, index, token, target, 2 * token);
        job->send(from, to, index, token, sent, 2 * token + 1);
        ASSERT_TRUE(job->step_until_complete(from, completions[from]));
        ASSERT_TRUE(job->step_until_complete(to, completions[to]));
        EXPECT_TRUE(job->report(to).has(2 * token));
        EXPECT_TRUE(matches(target, token)) << size_bytes << " bytes from rank " << from << " on channel " << index;
        for (size_t i = 0; i < kGuard; ++i) {
          ASSERT_EQ(memory[i], std::byte{0xA5});
          ASSERT_EQ(memory[memory.size() - 1 - i], std::byte{0xA5});
        }
      }
    }
  }
}

TEST_P(TransportConformance, EverySizeArrivesInItsSinkInDisjointPieces) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  Token token = 0;
  for (const size_t size_bytes : kSizes) {
    for (const bool is_receiver_first : {true, false}) {
      const auto sent = payload(size_bytes, ++token);
      CheckingSink sink(size_bytes);
      if (!is_receiver_first) {
        job->send(0, 1, 0, token, sent, token);
        for (int i = 0; i < kAFewSteps; ++i) job->step();
      }
      sink.inside_progress = false;
      job->receive(1, 0, 0, token, size_bytes, sink, token);
      sink.inside_progress = true;
      if (is_receiver_first) job->send(0, 1, 0, token, sent, token);
      ASSERT_TRUE(job->step_until_complete(1, token));
      ASSERT_TRUE(job->step_until_complete(0, token));
      EXPECT_TRUE(sink.is_complete()) << size_bytes;
      EXPECT_TRUE(matches(sink.bytes(), token)) << size_bytes;
    }
  }
}

TEST_P(TransportConformance, AnEnvelopeAloneNeedsNeitherTargetNorSink) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  job->receive(1, 0, 0, 1, Bytes(), 1);
  job->send(0, 1, 0, 1, ConstBytes(), 1);
  ASSERT_TRUE(job->step_until_complete(1, 1));
  ASSERT_TRUE(job->step_until_complete(0, 1));
}

// Messages of growing and shrinking sizes; the k-th send must meet the k-th receive.
void exchange_in_order(TestJob& job, bool receives_first) {
  constexpr size_t kMessages = 600;
  const auto size_of_message = [](size_t k) { return k % 97 == 0 ? 70000 + k : (k * 37) % 900; };
  std::vector<std::vector<std::byte>> sent, received;
  for (size_t k = 0; k < kMessages; ++k) {
    sent.push_back(payload(size_of_message(k), k));
    received.emplace_back(size_of_message(k));
  }
  const auto post_receives = [&job, &received] {
    for (size_t k = 0; k < kMessages; ++k) job.receive(1, 0, 0, k, received[k], k);
  };
  if (receives_first) post_receives();
  for (int i = 0; i < kAFewSteps; ++i) job.step();
  for (size_t k = 0; k < kMessages; ++k) job.send(0, 1, 0, k, sent[k], k);
  for (int i = 0; i < kAFewSteps; ++i) job.step();
  if (!receives_first) post_receives();
  ASSERT_TRUE(job.step_until_complete(1, kMessages));
  ASSERT_TRUE(job.step_until_complete(0, kMessages));
  for (size_t k = 0; k < kMessages; ++k) ASSERT_TRUE(matches(received[k], k)) << "message " << k;
}

TEST_P(TransportConformance, ManySendsMayQueueBeforeTheReceiverPosts) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  exchange_in_order(*job, false);
}

TEST_P(TransportConformance, ManyReceivesMayQueueBeforeTheSenderPosts) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  exchange_in_order(*job, true);
}

TEST_P(TransportConformance, AStalledChannelHoldsBackNothingElse) {
  const auto job = connected(GetParam(), {.ranks = 3, .channels = 3});
  // Rank 0 sends far more on channel 0 to rank 1 than anything can buffer; nobody receives it yet.
  std::vector<std::vector<std::byte>> stalled;
  for (Token k = 0; k < 4; ++k) stalled.push_back(payload(9 * kMiB, 100 + k));
  for (Token k = 0; k < 4; ++k) job->send(0, 1, 0, k, stalled[k], 100 + k);
  for (int i = 0; i < kAFewSteps; ++i) job->step();
  struct Way {
    Rank from, to;
    int index;
  };
  constexpr Way kWays[] = {{1, 0, 0}, {0, 1, 1}, {1, 0, 1}, {0, 1, 2}, {0, 2, 0}, {2, 1, 0}};
  Token token = 0;
  for (const Way& way : kWays) {
    for (const size_t size_bytes : {size_t{8}, 3 * kMiB}) {
      const auto sent = payload(size_bytes, ++token);
      std::vector<std::byte> received(size_bytes);
      job->send(way.from, way.to, way.index, token, sent, token);
      job->receive(way.to, way.from, way.index, token, received, 1000 + token);
      const bool arrived = job->step_until(
          [&job, &way, token] { return job->report(way.from).has(token) && job->report(way.to).has(1000 + token); });
      ASSERT_TRUE(arrived) << way.from << " -> " << way.to << " on channel " << way.index << ", " << size_bytes
                           << " bytes";
      EXPECT_TRUE(matches(received, token));
    }
  }
  std::vector<std::byte> late(9 * kMiB);
  for (Token k = 0; k < 4; ++k) {
    job->receive(1, 0, 0, k, late, 5000 + k);
    ASSERT_TRUE(job->step_until([&job, k] { return job->report(1).has(5000 + k); }));
    EXPECT_TRUE(matches(late, 100 + k));
  }
  ASSERT_TRUE(job->step_until([&job] { return job->report(0).has(103); }));
}

TEST_P(TransportConformance, CompletionsComeOnceAndNeverBeforeProgress) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  const auto sent = payload(64, 1);
  std::vector<std::byte> received(64);
  job->send(0, 1, 0, 1, sent, 7);
  EXPECT_TRUE(job->report(0).completed.empty());
  for (int i = 0; i < kAFewSteps; ++i) job->step();
  job->receive(1, 0, 0, 1, received, 8);
  EXPECT_TRUE(job->report(1).completed.empty());
  ASSERT_TRUE(job->step_until_complete(1, 1));
  ASSERT_TRUE(job->step_until_complete(0, 1));
  for (int i = 0; i < kAFewSteps; ++i) job->step();  // TestJob::step fails the test when a token comes again
  EXPECT_TRUE(job->report(0).has(7));
  EXPECT_TRUE(job->report(1).has(8));
  EXPECT_EQ(job->report(0).completed.size() + job->report(1).completed.size(), 2u);
}

TEST_P(TransportConformance, ProgressOnlyAppendsToTheEvents) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  const auto sent = payload(64, 1);
  job->send(0, 1, 0, 1, sent, 7);
  Events events;
  events.completed = {41, 42};
  const Deadline deadline = Deadline::after(kTimeout);
  while (events.completed.size() < 3 && !deadline.passed()) {
    ASSERT_TRUE((*job)[0].progress(events).is_ok());
    job->step(1);
  }
  EXPECT_EQ(events.completed, (std::vector<Token>{41, 42, 7}));
}

TEST_P(TransportConformance, TheBufferOfACompletedSendMayBeOverwritten) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  std::vector<std::byte> buffer(3 * kMiB);
  size_t completions = 0;
  for (const size_t size_bytes : {size_t{1}, size_t{300}, size_t{20000}, size_t{200000}, 3 * kMiB}) {
    const Bytes message = Bytes(buffer).first(size_bytes);
    fill(message, size_bytes);
    job->send(0, 1, 0, 1, message, ++completions);
    // With luck the send completes before there is a receive; a large one cannot.
    for (int i = 0; i < kAFewSteps && !job->report(0).has(completions); ++i) job->step();
    std::vector<std::byte> received(size_bytes);
    const bool complete_early = job->report(0).has(completions);
    if (complete_early) std::ranges::fill(message, std::byte{0xFF});
    job->receive(1, 0, 0, 1, received, completions);
    ASSERT_TRUE(job->step_until_complete(0, completions));
    std::ranges::fill(message, std::byte{0xFF});
    ASSERT_TRUE(job->step_until_complete(1, completions));
    EXPECT_TRUE(matches(received, size_bytes)) << size_bytes << (complete_early ? " early" : " late");
  }
}

}  // namespace ccom::conformance
