// SPDX-License-Identifier: Apache-2.0
//
// The contract of transports/transport.h where something ends: by a mismatch, by stop(), by the destructor; and how a
// wait ends.
#include <sys/mman.h>

#include <algorithm>
#include <thread>

#include "tests/conformance/test_job.h"

namespace ccom::conformance {
namespace {

// Memory whose every later access is a crash once it is locked.
class LockableMemory {
 public:
  explicit LockableMemory(size_t size_bytes)
      : bytes_(static_cast<std::byte*>(
                   ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
               size_bytes) {}
  LockableMemory(const LockableMemory&) = delete;
  LockableMemory& operator=(const LockableMemory&) = delete;
  ~LockableMemory() { ::munmap(bytes_.data(), bytes_.size()); }
  Bytes bytes() const { return bytes_; }
  void lock() { ASSERT_EQ(::mprotect(bytes_.data(), bytes_.size(), PROT_NONE), 0); }

 private:
  Bytes bytes_;
};

}  // namespace

// What rank 1 expects differs from what rank 0 sends as second message.
struct Difference {
  uint64_t sent_envelope, expected_envelope;
  size_t sent_bytes, expected_bytes;
};

void expect_mismatch(TestJob& job, const Difference& difference, bool use_sink) {
  const auto good = payload(100, 1);
  const auto bad = payload(difference.sent_bytes, 2);
  std::vector<std::byte> received(100), target(difference.expected_bytes, std::byte{0xA5});
  CheckingSink sink(difference.expected_bytes);
  job.receive(1, 0, 1, 1, received, 1);
  if (use_sink) {
    job.receive(1, 0, 1, difference.expected_envelope, difference.expected_bytes, sink, 2);
  } else {
    job.receive(1, 0, 1, difference.expected_envelope, target, 2);
  }
  job.send(0, 1, 1, 1, good, 1);
  job.send(0, 1, 1, difference.sent_envelope, bad, 2);
  ASSERT_TRUE(job.step_until([&job] { return job.report(1).mismatch.has_value(); })) << job.report(1).status.message();
  const Mismatch& mismatch = *job.report(1).mismatch;
  EXPECT_EQ(mismatch.peer, 0);
  EXPECT_EQ(mismatch.expected, envelope(difference.expected_envelope));
  EXPECT_EQ(mismatch.received, envelope(difference.sent_envelope));
  EXPECT_EQ(mismatch.expected_bytes, difference.expected_bytes);
  EXPECT_EQ(mismatch.received_bytes, difference.sent_bytes);
  EXPECT_TRUE(job.report(1).has(1)) << "the message before it was fine";
  EXPECT_FALSE(job.report(1).has(2));
  EXPECT_TRUE(sink.is_untouched());
  for (const std::byte byte : target) ASSERT_EQ(byte, std::byte{0xA5});
  job[1].stop();
  job[0].stop();  // it may still send `bad`, again by another interface
}

TEST_P(TransportConformance, AMismatchIsReportedAndNothingDelivered) {
  constexpr Difference kDifferences[] = {
      {5, 6, 64, 64},              // another call
      {5, 6, 0, 0},                // the same without payload
      {5, 5, 64, 80},              // shorter than expected
      {5, 5, 4096, 16},            // longer
      {5, 5, 0, 16},               // nothing for something
      {5, 5, 2 * kMiB, 0},         // something for nothing
      {5, 6, 2 * kMiB, 3 * kMiB},  // everything differs
  };
  for (const Difference& difference : kDifferences) {
    for (const bool use_sink : {false, true}) {
      SCOPED_TRACE(testing::Message() << difference.sent_bytes << " bytes for " << difference.expected_bytes);
      const auto job = connected(GetParam(), {.ranks = 2, .channels = 2});
      expect_mismatch(*job, difference, use_sink);
    }
  }
}

// Rank 0 sends to rank 1; `stopped` stops, and its buffer must not be touched any more.
void expect_buffer_left_alone(const Member& member, Rank stopped) {
  for (const int steps_before : {0, 1, 3}) {
    const auto job = connected(member, {.ranks = 2, .channels = 1});
    LockableMemory source(9 * kMiB), target(9 * kMiB);
    fill(source.bytes(), 1);
    job->receive(1, 0, 0, 1, target.bytes(), 1);
    job->send(0, 1, 0, 1, source.bytes(), 1);
    for (int i = 0; i < steps_before; ++i) job->step();
    const bool was_complete = job->report(stopped).has(1);
    (*job)[stopped].stop();
    (stopped == 0 ? source : target).lock();
    for (int i = 0; i < kAFewSteps; ++i) job->step();
    (*job)[stopped].stop();
    EXPECT_EQ(job->report(stopped).has(1), was_complete) << "nothing completes after stop()";
    job->destroy(stopped);
    for (int i = 0; i < kAFewSteps; ++i) job->step();
  }
}

TEST_P(TransportConformance, StopLeavesTheReceiversBufferAloneThoughThePeerSendsOn) {
  expect_buffer_left_alone(GetParam(), 1);
}
TEST_P(TransportConformance, StopLeavesTheSendersBufferAloneThoughThePeerReceivesOn) {
  expect_buffer_left_alone(GetParam(), 0);
}

// A rank whose communicator has failed need not end soon, and who waits for a message of it need not hear of the cause.
TEST_P(TransportConformance, StopEndsThePeersReceivesThoughTheTransportLives) {
  const auto job = connected(GetParam(), {.ranks = 3, .channels = 2});
  const auto sent = payload(1000, 1);
  std::vector<std::byte> received(1000), never(1000), never_either(1000);
  job->receive(1, 0, 0, 1, received, 1);
  job->receive(1, 0, 1, 2, never, 2, true);
  job->receive(2, 0, 1, 3, never_either, 3);
  job->send(0, 1, 0, 1, sent, 1);
  ASSERT_TRUE(job->step_until_complete(0, 1));
  std::thread stopper([&job] { (*job)[0].stop(); });
  const Deadline deadline = Deadline::after(kTimeout);
  for (const Rank rank : {1, 2}) {
    const Report& report = job->report(rank);
    while (report.ended.empty() && report.status.is_ok() && !deadline.passed()) {
      (*job)[rank].wait(std::chrono::milliseconds(10));
      job->step(rank);
    }
  }
  stopper.join();
  EXPECT_TRUE(job->report(1).status.is_ok()) << job->report(1).status.message();
  EXPECT_EQ(job->report(1).ended, std::vector<Token>{2});
  EXPECT_TRUE(job->report(1).has(1) && matches(received, 1)) << "what was sent before arrives";
  EXPECT_EQ(job->report(2).status.code(), Code::RemoteError) << job->report(2).status.message();
  EXPECT_EQ(job->report(2).status.peers(), std::vector<int>{0});
}

// Also when pieces of a message are under way: what the peer was promised may never come.
TEST_P(TransportConformance, StopEndsAReceiveInTheMiddleOfItsMessage) {
  for (const int steps_before : {0, 1, 3, 10}) {
    const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
    const auto sent = payload(9 * kMiB, 1);
    std::vector<std::byte> received(9 * kMiB);
    job->receive(1, 0, 0, 1, received, 1);
    job->send(0, 1, 0, 1, sent, 1);
    for (int i = 0; i < steps_before; ++i) job->step();
    (*job)[0].stop();
    const Report& report = job->report(1);
    EXPECT_TRUE(job->step_until([&report] { return report.has(1) || !report.status.is_ok(); })) << steps_before;
    if (report.has(1)) continue;
    EXPECT_EQ(report.status.code(), Code::RemoteError) << report.status.message();
    EXPECT_EQ(report.status.peers(), std::vector<int>{0});
  }
}

TEST_P(TransportConformance, TheDestructorLosesNothingThatWasComplete) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  constexpr Token kMessages = 60, kReceivedEarly = 5;
  std::vector<std::vector<std::byte>> sent, received(kMessages, std::vector<std::byte>(1000));
  for (Token k = 0; k < kMessages; ++k) sent.push_back(payload(1000, k));
  for (Token k = 0; k < kReceivedEarly; ++k) job->receive(1, 0, 0, k, received[k], k);
  for (Token k = 0; k < kMessages; ++k) job->send(0, 1, 0, k, sent[k], k);
  for (int i = 0; i < kAFewSteps; ++i) job->step();
  ASSERT_TRUE(job->step_until_complete(0, kReceivedEarly));
  const size_t promised = job->report(0).completed.size();  // all, if the transport buffers that much
  // Rank 0 goes at once; rank 1 looks after its transport meanwhile, but posts its receives later.
  std::thread leaver([&job] { job->destroy(0); });
  for (int i = 0; i < kAFewSteps; ++i) {
    job->step(1);
    std::this_thread::yield();
  }
  for (Token k = kReceivedEarly; k < promised; ++k) job->receive(1, 0, 0, k, received[k], k);
  const Deadline deadline = Deadline::after(kTimeout);
  const Report& report = job->report(1);
  while (report.completed.size() < promised && report.status.is_ok() && !deadline.passed()) job->step(1);
  leaver.join();
  ASSERT_EQ(report.completed.size(), promised) << report.status.message();
  for (Token k = 0; k < promised; ++k) EXPECT_TRUE(matches(received[k], k)) << "message " << k;
}

// Rank 1 gets no core for half a second. What it sends then, acknowledgements too, a closed connection would answer
// with a reset, which takes away what has not been read.
TEST_P(TransportConformance, TheDestructorWaitsForAPeerThatIsLate) {
  constexpr size_t kBytes = 16000;
  constexpr int kChannels = 8;
  constexpr Token kOfChannel = 4, kMessages = kChannels * kOfChannel;
  const auto job = connected(GetParam(), {.ranks = 2, .channels = kChannels});
  std::vector<std::vector<std::byte>> sent, received(kMessages, std::vector<std::byte>(kBytes));
  for (Token k = 0; k < kMessages; ++k) sent.push_back(payload(kBytes, k));
  const auto channel = [](Token k) { return static_cast<int>(k % kChannels); };
  for (Token k = 0; k < kMessages; ++k) job->send(0, 1, channel(k), k, sent[k], k);
  for (int i = 0; i < kAFewSteps; ++i) job->step(0);
  const Report& promised = job->report(0);  // nothing, if the transport buffers less than a message
  for (const auto& [k, times] : promised.completed) job->receive(1, 0, channel(k), k, received[k], k);
  std::thread leaver([&job] { job->destroy(0); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Deadline deadline = Deadline::after(kTimeout);
  const Report& report = job->report(1);
  while (report.completed.size() < promised.completed.size() && report.status.is_ok() && !deadline.passed()) {
    job->step(1);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  leaver.join();
  EXPECT_EQ(report.completed.size(), promised.completed.size()) << report.status.message();
}

// Rank 0 leaves; rank 2 goes on as if nothing had been. The second channel shows that ends are seen after what was
// sent.
TEST_P(TransportConformance, ReceivesThatMayEndDoSoWhenThePeerHasLeftAndHarmNobody) {
  const auto job = connected(GetParam(), {.ranks = 3, .channels = 2});
  const auto sent = payload(1000, 1);
  std::vector<std::byte> received(1000), never(1000), never_either(8);
  job->receive(1, 0, 0, 1, received, 1, true);
  job->receive(1, 0, 0, 2, never, 2, true);
  job->receive(1, 0, 0, 3, never_either, 3, true);
  job->receive(1, 0, 1, 4, never_either, 4, true);
  job->send(0, 1, 0, 1, sent, 1);
  ASSERT_TRUE(job->step_until_complete(0, 1));
  std::thread leaver([&job] { job->destroy(0); });
  const Deadline deadline = Deadline::after(kTimeout);
  while (job->report(1).ended.size() < 3 && job->report(1).status.is_ok() && !deadline.passed()) {
    job->step(1);
    (*job)[1].wait(std::chrono::milliseconds(10));
  }
  leaver.join();
  ASSERT_TRUE(job->report(1).status.is_ok()) << job->report(1).status.message();
  EXPECT_TRUE(job->report(1).has(1));
  EXPECT_TRUE(matches(received, 1));
  std::ranges::sort(job->report(1).ended);
  EXPECT_EQ(job->report(1).ended, (std::vector<Token>{2, 3, 4}));
  job->receive(1, 0, 0, 5, never, 5, true);
  job->receive(1, 2, 0, 6, received, 6);
  job->send(2, 1, 0, 6, sent, 6);
  ASSERT_TRUE(job->step_until([&job] { return job->report(1).has(6) && job->report(1).ended.size() == 4; }))
      << job->report(1).status.message();
}

// A sleeper hears of the end at once.
TEST_P(TransportConformance, WaitEndsWhenThePeerLeaves) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  std::vector<std::byte> never(8);
  job->receive(1, 0, 0, 1, never, 1, true);
  job->step(1);
  std::thread leaver([&job] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    job->destroy(0);
  });
  const auto start = Clock::now();
  while (job->report(1).ended.empty() && Clock::now() - start < kTimeout) {
    (*job)[1].wait(kTimeout);
    job->step(1);
  }
  leaver.join();
  EXPECT_LT(Clock::now() - start, kTimeout / 2);
}

TEST_P(TransportConformance, TheDestructorDoesNotWaitForWhatIsStillQueued) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  const auto sent = payload(9 * kMiB, 1);
  for (Token k = 0; k < 4; ++k) job->send(0, 1, 0, k, sent, k);
  for (int i = 0; i < kAFewSteps; ++i) job->step(0);
  const auto start = Clock::now();
  job->destroy(0);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(4));
}

TEST_P(TransportConformance, WaitEndsWhenItsTimeIsUp) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  std::vector<std::byte> received(8);
  job->receive(1, 0, 0, 1, received, 1);
  job->step(1);
  const auto start = Clock::now();
  (*job)[1].wait(std::chrono::milliseconds(50));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
}

TEST_P(TransportConformance, WaitEndsOnWakeAlsoIfThatCameFirst) {
  const auto job = connected(GetParam(), {.ranks = 2, .channels = 1});
  job->step(1);
  const auto start = Clock::now();
  for (int i = 0; i < 20; ++i) {
    (*job)[1].wake();
    (*job)[1].wait(kTimeout);
  }
  for (int i = 0; i < 5; ++i) {
    std::thread waker([&job] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // so that wait() usually blocks already
      (*job)[1].wake();
    });
    (*job)[1].wait(kTimeout);
    waker.join();
  }
  EXPECT_LT(Clock::now() - start, kTimeout / 2);
}

}  // namespace ccom::conformance
