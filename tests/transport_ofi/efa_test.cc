// SPDX-License-Identifier: Apache-2.0
//
// The transport on the emulated EFA (efa/network.h): thousands of seeds of traffic, each with another personality; and
// every error that EFA knows, refused registrations, dead peers, forks. Nothing may be lost, damaged or left waiting,
// and nothing may happen that a device would not forgive.
//
// CCOM_TEST_LONG=1 runs 10,000 seeds instead of a few; CCOM_TEST_SEED=N begins with N: with
// CCOM_TEST_SEEDS=1 it repeats one that failed.
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <thread>

#include "tests/harness/child.h"
#include "tests/transport_ofi/efa/job.h"
#include "tests/transport_ofi/traffic.h"
#include "transports/ofi/addresses.h"

namespace ccom::ofi {
namespace {

void run_seed(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const efa::Personality personality = efa::draw_personality(seed);
  efa::network().become(personality);
  const int ranks = 2 + static_cast<int>(random() % 2), channels = 1 + static_cast<int>(random() % 3);
  OfiJob job(efa_job(ranks, channels, personality.has_rma ? 1 + random() % 3 : 0));
  ASSERT_TRUE(job.status().is_ok()) << job.status().message();
  ASSERT_TRUE(job.connect_all());
  Traffic traffic(job, ranks, channels, random());
  traffic.post();
  const bool is_done = traffic.run();
  for (Rank rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(job.report(rank).status.is_ok()) << job.report(rank).status.message();
    EXPECT_EQ(job[rank].dropped_messages(), 0u);
  }
  EXPECT_TRUE(is_done);
  traffic.check(true);
  job.destroy_all();
  expect_no_violations();
  EXPECT_EQ(efa::network().endpoints(), 0u);
}

TEST(OfiEfaSeeds, AnyOrderAnyPiecesAndAnyDelayGiveTheSameBytes) {
  const uint64_t first = test_seed(), count = count_seeds(150);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) run_seed(seed);
}

// One operation, anywhere, fails as EFA may fail it; or somebody dies. Nobody hangs, what is reported complete is
// right, and whoever gets an error is told of a rank.
void run_faulty_seed(uint64_t seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed * 77);
  efa::Personality personality = efa::draw_personality(seed);
  personality.queue = 256;
  efa::network().become(personality);
  JobOptions options = efa_job(3, 1, personality.has_rma ? 2 : 0);
  options.flight_time = std::chrono::milliseconds(5);
  OfiJob job(options);
  ASSERT_TRUE(job.connect_all());
  const int errors[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 4105, 4124, 4126, 4127};
  const bool is_death = random() % 3 == 0;
  Traffic traffic(job, 3, 1, random());
  traffic.post();
  if (is_death) {
    for (const std::string& address : split_addresses(job[2].address())) efa::network().kill(address);
  } else {
    efa::network().fail_next(errors[random() % std::size(errors)]);
  }
  traffic.run(std::chrono::milliseconds(500));  // who only receives from the dead is told by liveness, not here
  bool has_failed = false;
  for (Rank rank = 0; rank < 3; ++rank) {
    const Status& status = job.report(rank).status;
    has_failed |= !status.is_ok();
    if (status.is_ok()) continue;
    EXPECT_EQ(status.peers().size(), 1u) << status.message();
    if (is_death && rank != 2) {
      EXPECT_EQ(status.peers(), std::vector<int>{2}) << status.message();
    }
  }
  traffic.check(!has_failed && !is_death);
  for (Rank rank = 0; rank < 3; ++rank) job[rank].stop();
  job.destroy_all();
  expect_no_violations();
}

TEST(OfiEfaSeeds, AFailureAnywhereEndsInAnErrorThatNamesARankOrInARightResult) {
  const uint64_t first = test_seed(), count = count_seeds(20);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) run_faulty_seed(seed);
}

TEST(OfiEfa, EveryErrorOfTheProviderIsASentenceThatNamesThePeer) {
  struct Case {
    int efa_errno;
    Code code;
    const char* words;
  };
  const Case cases[] = {{7, Code::TransportError, "memory"},
                        {8, Code::RemoteError, "aborted"},
                        {9, Code::RemoteError, "no longer"},
                        {10, Code::TransportError, "no buffer"},
                        {12, Code::RemoteError, "bad status"},
                        {13, Code::RemoteError, "stopped answering"},
                        {14, Code::RemoteError, "does not know"},
                        {15, Code::RemoteError, "unreachable"},
                        {4105, Code::OutOfMemory, "memory"},
                        {4124, Code::RemoteError, "stopped answering"},
                        {4126, Code::RemoteError, "handshake"},
                        {4127, Code::RemoteError, "aborted"},
                        {5, Code::TransportError, "no longer) registered"},
                        {3, Code::TransportError, "not support"},
                        {4200, Code::TransportError, "4200"}};
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.efa_errno);
    efa::network().become({});
    OfiJob job(efa_job(3, 1, 1));
    ASSERT_TRUE(job.connect_all());
    const auto sent = pattern(64, 1);
    efa::network().fail_next(expected.efa_errno, split_addresses(job[0].address()).front());
    ASSERT_TRUE(job.channel(0, 2).post_send({{}, sent, 1}).is_ok());
    ASSERT_TRUE(job.step_until([&job] { return !job.report(0).status.is_ok(); }));
    const Status& status = job.report(0).status;
    EXPECT_EQ(status.code(), expected.code) << status.message();
    EXPECT_EQ(status.peers(), std::vector<int>{2});
    EXPECT_NE(status.message().find("rank 0 -> 2"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(expected.words), std::string::npos) << status.message();
    EXPECT_EQ(status.cure().find("security group") != std::string::npos, expected.efa_errno == 15) << status.cure();
  }
}

TEST(OfiEfa, AWriteThatFailsNamesThePeer) {
  efa::network().become({});
  OfiJob job(efa_job(3, 1, 1));
  ASSERT_TRUE(job.connect_all());
  const auto sent = pattern(1 << 20, 1);
  efa::network().fail_next(efa::kUnreachable, split_addresses(job[0].address()).back());
  ASSERT_TRUE(job.channel(0, 1).post_send({{}, sent, 1}).is_ok());
  ASSERT_TRUE(job.step_until([&job] { return !job.report(0).status.is_ok(); }));
  EXPECT_EQ(job.report(0).status.code(), Code::RemoteError);
  EXPECT_EQ(job.report(0).status.peers(), std::vector<int>{1});
  EXPECT_NE(job.report(0).status.message().find("write, rank 0 -> 1"), std::string::npos);
}

TEST(OfiEfa, MemoryThatCannotBeRegisteredIsCopiedInstead) {
  efa::network().become({.seed = 5, .refuse_registration_one_in = 6});
  // The transport's own buffers must be registered, so a job may fail to open; one that does not must work.
  for (int attempt = 0, worked = 0; worked < 5; ++attempt) {
    ASSERT_LT(attempt, 500);
    OfiJob job(efa_job(2, 1, 1));
    const auto results = job.connect(std::chrono::milliseconds(300));
    if (!results[0].is_ok() || !results[1].is_ok()) continue;
    ++worked;
    Traffic traffic(job, 2, 1, static_cast<uint64_t>(attempt));
    traffic.post();
    EXPECT_TRUE(traffic.run()) << job.report(0).status.message() << job.report(1).status.message();
    traffic.check(true);
    job.destroy_all();
  }
  expect_no_violations();
}

// Sends one message between two places of memory and says how many registrations that took.
uint64_t count_registrations(OfiJob& job, Bytes from, Bytes to) {
  const uint64_t before = efa::network().registrations();
  const size_t completed = job.report(1).completed.size();
  EXPECT_TRUE(job.channel(1, 0).post_receive({{}, to.size(), to.data(), nullptr, 1}).is_ok());
  for (int i = 0; i < 50; ++i) job.step();  // so that the sender knows the target before it begins
  EXPECT_TRUE(job.channel(0, 1).post_send({{}, from, 1}).is_ok());
  EXPECT_TRUE(job.step_until([&job, completed] { return job.report(1).completed.size() > completed; }));
  EXPECT_TRUE(job.step_until([&job] { return job.report(0).completed.size() == job.report(1).completed.size(); }));
  EXPECT_TRUE(std::ranges::equal(from, to));
  return efa::network().registrations() - before;
}

TEST(OfiEfa, RegistrationsAreKeptOnlyForMemoryWhoseEndIsSeen) {
  efa::network().become({});
  const auto arena = Arena::create(size_t{16} << 20);
  ASSERT_TRUE(arena);
  constexpr size_t kSize = size_t{1} << 20;
  const auto allocate = [&arena](uint64_t seed) {
    const Bytes bytes(static_cast<std::byte*>(*(*arena)->allocate(kSize)), kSize);
    std::ranges::copy(pattern(kSize, seed), bytes.begin());
    return bytes;
  };
  JobOptions options = efa_job(2, 1, 1);
  options.arena = arena->get();
  OfiJob job(options);
  ASSERT_TRUE(job.connect_all());
  Bytes from = allocate(1);
  const Bytes to = allocate(2);
  EXPECT_EQ(count_registrations(job, from, to), 2u);
  EXPECT_EQ(count_registrations(job, from, to), 0u) << "kept";
  // Given back and taken anew: the same address, other pages.
  ASSERT_TRUE((*arena)->free(from.data()).is_ok());
  const Bytes again = allocate(3);
  ASSERT_EQ(again.data(), from.data());
  EXPECT_EQ(count_registrations(job, again, to), 2u) << "a stale registration was used";
  // Memory that can be unmapped behind our back.
  auto source = pattern(kSize, 4), target = pattern(kSize, 5);
  EXPECT_EQ(count_registrations(job, source, target), 2u);
  EXPECT_EQ(count_registrations(job, source, target), 2u);
  EXPECT_EQ(job[0].kept_registrations(), 1u);
  job[0].stop();
  EXPECT_EQ(job[0].kept_registrations(), 0u);
}

TEST(OfiEfa, KeepsABoundedNumberOfRegistrations) {
  efa::network().become({.refuse_one_in = 0, .hold_back_one_in = 0});
  const auto arena = Arena::create(size_t{64} << 20);
  ASSERT_TRUE(arena);
  JobOptions options = efa_job(2, 1, 1);
  options.arena = arena->get();
  OfiJob job(options);
  ASSERT_TRUE(job.connect_all());
  constexpr size_t kSize = size_t{128} << 10;
  const Bytes memory(static_cast<std::byte*>(*(*arena)->allocate(2 * kSize)), 2 * kSize);
  std::vector<std::byte> target(kSize);
  for (size_t i = 0; i < Registrations::kMostKept + 10; ++i) {
    (void)count_registrations(job, memory.subspan(16 * i, kSize), target);
  }
  EXPECT_EQ(job[0].kept_registrations(), Registrations::kMostKept);
}

TEST(OfiEfa, AForkedChildThatDestroysTheTransportDisturbsNobody) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "in the child, the thread sanitizer misses the join of a thread that only the parent had";
#endif
  efa::network().become({});
  OfiJob job(efa_job(2, 1, 1));
  ASSERT_TRUE(job.connect_all());
  EXPECT_TRUE(holds_in_child([&job] {
    job.destroy(0);
    job.destroy(1);
    return efa::network().endpoints() == 4;
  })) << "the child closed endpoints that are its parent's";
  Traffic traffic(job, 2, 1, 1);
  traffic.post();
  EXPECT_TRUE(traffic.run());
  traffic.check(true);
}

}  // namespace
}  // namespace ccom::ofi
