// SPDX-License-Identifier: Apache-2.0
//
// Recordings put together: clocks of machines, the first difference between ranks, and who made others wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/trace/recordings.h"
#include "trace/differences.h"
#include "trace/stragglers.h"

namespace ccom {
namespace {

using testing::ElementsAre;
using State = ComparedCall::State;

TEST(Jobs, FilesThatShareACommunicatorBelongTogether) {
  std::vector<Recording> files = recordings_of(3, 2);
  files[2].communicators[0].number = 8;
  files[2].last_ns = 100;
  const std::vector<RecordedJob> jobs = jobs_of(std::move(files));
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].files.size(), 1u);  // ended last
  EXPECT_EQ(jobs[1].files.size(), 2u);
}

// A machine whose clock is off by an offset and drifts; calls of which each rank knows its own times only.
struct Clocks {
  int64_t offset_ns;
  double drift;
  int64_t other(int64_t ns) const { return ns + offset_ns + static_cast<int64_t>(drift * static_cast<double>(ns)); }
};

class ClocksTest : public testing::TestWithParam<Clocks> {};

TEST_P(ClocksTest, AreKnownToWithinTheirErrorByCallsThatAllRanksMeetIn) {
  const Clocks clocks = GetParam();
  std::vector<Recording> files{recording_of(0, 2, "a"), recording_of(1, 2, "b")};
  std::mt19937 random(5);
  int64_t now = 1'000'000'000;
  for (uint64_t number = 1; number <= 2000; ++number) {
    const int64_t one = now + random() % 50'000, two = now + random() % 50'000;
    const int64_t met = std::max(one, two);
    add_call(files[0], number, one, met + 5'000 + random() % 20'000);
    add_call(files[1], number, clocks.other(two), clocks.other(met + 5'000 + random() % 20'000));
    now += 10'000'000;
  }
  const RecordedJob job = job_of(std::move(files));
  const ClockOffset& found = job.clocks[1];
  EXPECT_TRUE(found.is_measured);
  for (int64_t at = 1'000'000'000; at < now; at += 500'000'000) {
    const int64_t error = found.to_common(clocks.other(at)) - at;
    EXPECT_LE(std::abs(error), found.error_ns() + std::abs(clocks.drift) * 2.5e9) << at;
  }
  EXPECT_LE(found.error_ns(), 50'000 + static_cast<int64_t>(std::abs(clocks.drift) * 5e9));
}

INSTANTIATE_TEST_SUITE_P(All, ClocksTest,
                         testing::Values(Clocks{0, 0}, Clocks{123'456'789, 0}, Clocks{-5'000'000'000, 2e-6},
                                         Clocks{77, -20e-6}));

TEST(Clocks, WithoutCommonCallsAreThoseOfTheCalendar) {
  std::vector<Recording> files{recording_of(0, 2, "a"), recording_of(1, 2, "b")};
  files[0].realtime_offset_ns = 1000;
  files[1].realtime_offset_ns = 400;
  const RecordedJob job = job_of(std::move(files));
  EXPECT_FALSE(job.clocks[1].is_measured);
  EXPECT_EQ(job.time(1, 0), -600);
}

TEST(Clocks, OfOneMachineAreOne) {
  std::vector<Recording> files = recordings_of(2, 2);
  add_call(files[0], 1, 10, 100);
  add_call(files[1], 1, 20, 101);
  const RecordedJob job = job_of(std::move(files));
  EXPECT_EQ(job.time(1, 20), 20);
  EXPECT_EQ(job.clocks[1].error_ns(), 0);
}

TEST(Differences, AreNoneWhereAllRanksDoTheSame) {
  std::vector<Recording> files = recordings_of(2, 2);
  for (Recording& file : files)
    for (uint64_t number = 1; number <= 3; ++number) add_call(file, number, 10 * number, 10 * number + 5);
  const RecordedJob job = job_of(std::move(files));
  EXPECT_EQ(first_difference(job.groups[0]), std::nullopt);
  const auto calls = last_calls(job, job.groups[0], 2);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].number, 2u);
  ASSERT_EQ(calls[1].parts.size(), 1u);
  EXPECT_THAT(calls[1].parts[0].ranks, ElementsAre(0, 1));
  EXPECT_EQ(calls[1].parts[0].state, State::Ended);
}

TEST(Differences, BeginWhereARankMadeAnotherCall) {
  std::vector<Recording> files = recordings_of(3, 3);
  for (Recording& file : files)
    for (uint64_t number = 1; number <= 40; ++number) {
      const uint64_t count = number == 10 && &file == &files[1] ? 5 : 1000;
      add_call(file, number, 10 * static_cast<int64_t>(number), 10 * static_cast<int64_t>(number) + 5, count);
    }
  const RecordedJob job = job_of(std::move(files));
  EXPECT_EQ(first_difference(job.groups[0]), 10u);
  const auto calls = last_calls(job, job.groups[0], 4);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[0].number, 8u);
  EXPECT_FALSE(calls[1].is_different);
  EXPECT_TRUE(calls[2].is_different);
  ASSERT_EQ(calls[2].parts.size(), 2u);
  EXPECT_THAT(calls[2].parts[0].ranks, ElementsAre(0, 2));
  EXPECT_EQ(calls[2].parts[1].call.count, 5u);
}

TEST(Differences, BeginWhereARankHasNotCome) {
  std::vector<Recording> files = recordings_of(3, 3);
  for (Recording& file : files) add_call(file, 1, 10, 20);
  add_call(files[0], 2, 30, std::nullopt);
  add_call(files[1], 2, 40, std::nullopt);
  files[0].last_ns = 1000;
  const RecordedJob job = job_of(std::move(files));
  EXPECT_EQ(first_difference(job.groups[0]), 2u);
  const ComparedCall call = compare_call(job, job.groups[0], 2);
  ASSERT_EQ(call.parts.size(), 2u);
  EXPECT_EQ(call.parts[0].state, State::Inside);
  EXPECT_EQ(call.parts[0].longest_ns, 970);
  EXPECT_EQ(call.parts[1].state, State::NotMade);
  EXPECT_EQ(call.parts[1].call.number, 1u);
  EXPECT_EQ(call.parts[1].longest_ns, 980);
}

// A ring forgets: calls that one rank no longer has are no difference.
TEST(Differences, AreNotWhatARankNoLongerHas) {
  std::vector<Recording> files = recordings_of(2, 2);
  for (uint64_t number = 1; number <= 5; ++number) add_call(files[0], number, 10 * number, 10 * number + 5);
  for (uint64_t number = 3; number <= 5; ++number) add_call(files[1], number, 10 * number, 10 * number + 5);
  const RecordedJob job = job_of(std::move(files));
  EXPECT_EQ(first_difference(job.groups[0]), std::nullopt);
  EXPECT_EQ(compare_call(job, job.groups[0], 1).parts[1].state, State::NotRecorded);
}

TEST(Differences, SayWhichRanksLeftNoFile) {
  std::vector<Recording> files = recordings_of(1, 3);
  add_call(files[0], 1, 10, 20);
  const RecordedJob job = job_of(std::move(files));
  const ComparedCall call = compare_call(job, job.groups[0], 1);
  ASSERT_EQ(call.parts.size(), 2u);
  EXPECT_EQ(call.parts[0].state, State::NotRecorded);
  EXPECT_THAT(call.parts[0].ranks, ElementsAre(1, 2));
  EXPECT_FALSE(call.is_different);
}

TEST(Stragglers, AreThoseWhoComeLast) {
  std::vector<Recording> files = recordings_of(3, 3);
  for (uint64_t number = 1; number <= 10; ++number) {
    const int64_t begin = static_cast<int64_t>(number) * 1000;
    add_call(files[0], number, begin, begin + 500);
    add_call(files[1], number, begin + 400, begin + 500);  // 390 later than the next to last
    add_call(files[2], number, begin + 10, begin + 500);
  }
  const RecordedJob job = job_of(std::move(files));
  const auto found = find_stragglers(job, job.groups[0]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(found[0].calls, 10u);
  EXPECT_EQ(found[0].late_ns, 3900);
  EXPECT_EQ(found[0].waited_ns, 7900);
  EXPECT_NEAR(found[0].share, 3900.0 / 9500.0, 1e-9);
  ASSERT_EQ(found[0].places.size(), 1u);
  EXPECT_EQ(found[0].places[0].site, "train.py:88 (step)");
}

TEST(Stragglers, OneThatHasNotComeIsNamed) {
  std::vector<Recording> files = recordings_of(2, 2);
  for (Recording& file : files) add_call(file, 1, 10, 20);
  add_call(files[0], 2, 30, std::nullopt);
  files[1].last_ns = 5030;
  const RecordedJob job = job_of(std::move(files));
  const auto found = find_stragglers(job, job.groups[0]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_TRUE(found[0].has_not_come);
  EXPECT_EQ(found[0].late_ns, 5000);
}

}  // namespace
}  // namespace ccom
