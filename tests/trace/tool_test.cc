// SPDX-License-Identifier: Apache-2.0
//
// What ccom-trace writes: text, JSON, Chrome's trace events, TensorBoard's records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <set>
#include <sstream>

#include "base/checksum.h"
#include "tests/trace/recordings.h"
#include "tools/trace/outputs.h"
#include "tools/trace/words.h"

namespace ccom::tracetool {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// Rank 1 is late to each call and has not come to the last one; rank 3 left no file.
RecordedJob example() {
  std::vector<Recording> files = recordings_of(3, 4);
  for (int64_t number = 1; number <= 3; ++number) {
    for (Recording& file : files) {
      const int64_t late = &file == &files[1] ? 400'000 : 0;
      add_call(file, static_cast<uint64_t>(number), number * 1'000'000 + late, number * 1'000'000 + 500'000);
    }
  }
  add_call(files[0], 4, 4'000'000, std::nullopt);
  add_call(files[2], 4, 4'000'000, std::nullopt);
  files[0].calls.back().waited_for = files[2].calls.back().waited_for = 1;
  for (Recording& file : files) file.last_ns = 2'004'000'000;
  return job_of(std::move(files));
}

TEST(Text, MarksTheFirstDifferenceAndNamesWhoIsWaitedFor) {
  const RecordedJob job = example();
  const std::string text = calls_text(job, job.groups[0], last_calls(job, job.groups[0], 3));
  EXPECT_THAT(text, HasSubstr("> #4  allreduce float32 sum count 1000 at train.py:88 (step)   the first in which"));
  EXPECT_THAT(text, HasSubstr("ranks 0 and 2: in it for 2 s, waits for rank 1"));
  EXPECT_THAT(text, HasSubstr("rank 1: has not called it: in no call for 2 s, last in #3 at train.py:88 (step)"));
  EXPECT_THAT(text, HasSubstr("rank 3: not recorded"));
  EXPECT_THAT(text, Not(HasSubstr("> #3")));
}

// Rank 0 waits in call 2 for rank 1, which waits for rank 0 in another communicator.
TEST(Text, SaysInWhichOtherCallARankIs) {
  std::vector<Recording> files = recordings_of(2, 2);
  for (Recording& file : files) add_call(file, 1, 1'000'000, 2'000'000);
  add_call(files[0], 2, 3'000'000, std::nullopt);
  RecordedCommunicator& part = files[1].communicators.emplace_back(files[1].communicators[0]);
  part.number = 8;
  part.name = "part";
  add_call(files[1], 1, 4'000'000, std::nullopt);
  files[1].calls.back().communicator = 1;
  files[1].calls.back().waited_for = 0;
  files[0].last_ns = files[1].last_ns = 1'004'000'000;
  const auto text = [](std::vector<Recording> recordings) {
    const RecordedJob job = job_of(std::move(recordings));
    return calls_text(job, job.groups[0], last_calls(job, job.groups[0], 1));
  };
  EXPECT_THAT(text(files), HasSubstr("> #2"));
  EXPECT_THAT(text(files),
              HasSubstr("rank 1: has not called it: in allreduce #1 of part at train.py:88 (step) for 1 s, "
                        "waits for rank 0\n"));
  files[1].calls.back().ended_ns = 1'004'000'000;
  files[1].calls.back().code = Code::Timeout;
  EXPECT_THAT(text(files),
              HasSubstr("rank 1: has not called it: was in allreduce #1 of part at train.py:88 (step), which "
                        "ended with \"timed out\" after 1 s, waited for rank 0\n"));
}

// Rank 2 stopped in call 2, rank 1 waits for it there, rank 0 has got on.
TEST(Text, NamesTheRankWhoseProcessDoesNotRun) {
  std::vector<Recording> files = recordings_of(3, 3);
  for (Recording& file : files) add_call(file, 1, 1'000'000, 2'000'000);
  for (Recording& file : files)
    add_call(file, 2, 3'000'000, &file == &files[0] ? std::optional(4'000'000) : std::nullopt);
  files[1].calls.back().waited_for = 2;
  add_call(files[0], 3, 5'000'000, std::nullopt);
  files[0].last_ns = files[1].last_ns = 3'003'000'000;
  std::vector<Recording> later = files;
  const RecordedJob job = job_of(std::move(files));
  const std::string text = calls_text(job, job.groups[0], last_calls(job, job.groups[0], 2));
  EXPECT_THAT(text, HasSubstr("rank 1: in it for 3 s, waits for rank 2\n"));
  EXPECT_THAT(text, HasSubstr("rank 2: in it for 3 s; its process has not run for 3 s\n"));
  EXPECT_THAT(text, HasSubstr("rank 1: has not called it: in #2 at train.py:88 (step) for 3 s, waits for rank 2\n"));
  EXPECT_THAT(
      stragglers_text(job.groups[0], find_stragglers(job, job.groups[0])),
      HasSubstr("rank 2 made the others wait 99.9 % of the time: 3 s in 1 call; it has not come to the last one"));

  // Rank 1 times out and leaves.
  later[1].calls.back().ended_ns = later[1].communicators[0].closed_ns = 3'003'000'000;
  later[1].calls.back().code = Code::Timeout;
  const RecordedJob ended = job_of(std::move(later));
  EXPECT_THAT(calls_text(ended, ended.groups[0], last_calls(ended, ended.groups[0], 1)),
              HasSubstr("rank 1: has left: was in #2 at train.py:88 (step), which ended with \"timed out\" after 3 s, "
                        "waited for rank 2\n"));
  EXPECT_THAT(stragglers_text(ended.groups[0], find_stragglers(ended, ended.groups[0])),
              HasSubstr("rank 2 made the others wait 99.9 %"));
}

TEST(Text, SaysWhoMadeTheOthersWait) {
  const RecordedJob job = example();
  const std::string text = stragglers_text(job.groups[0], find_stragglers(job, job.groups[0]));
  EXPECT_THAT(text, HasSubstr("rank 1 made the others wait"));
  EXPECT_THAT(text, HasSubstr("1.2 ms of them before 3 calls at train.py:88 (step); it has not come to the last one"));
}

TEST(Json, HoldsTheSame) {
  const json object = json::parse(to_json(example(), 3, true));
  const json& group = object["communicators"][0];
  EXPECT_EQ(group["first_difference"], 4);
  EXPECT_EQ(group["stragglers"][0]["rank"], 1);
  EXPECT_EQ(group["calls_by_rank"]["0"].size(), 4u);
  EXPECT_TRUE(group["calls_by_rank"]["0"][3]["ended_ns"].is_null());
}

// The format's rules: an array of objects, each with a phase, a process and a thread; slices of one thread nest.
TEST(Perfetto, EveryCallIsASlice) {
  std::ostringstream out;
  write_perfetto(example(), out);
  const json trace = json::parse(out.str());
  ASSERT_TRUE(trace["traceEvents"].is_array());
  std::map<std::pair<int, int>, double> ends;
  std::set<std::string> processes;
  size_t slices = 0;
  for (const json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event["name"].is_string());
    ASSERT_TRUE(event["pid"].is_number_integer());
    ASSERT_TRUE(event["tid"].is_number_integer());
    if (event["ph"] == "M") {
      if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    ASSERT_GE(event["ts"].get<double>(), 0);
    ASSERT_GE(event["dur"].get<double>(), 0);
    double& end = ends[{event["pid"], event["tid"]}];
    EXPECT_GE(event["ts"].get<double>(), end);
    end = event["ts"].get<double>() + event["dur"].get<double>();
    ++slices;
  }
  EXPECT_EQ(slices, 11u);
  EXPECT_EQ(processes.size(), 3u);
}

TEST(TensorBoard, RecordsHaveLengthsAndChecks) {
  const TemporaryFolder folder;
  const auto path = write_tensorboard(example(), folder.path() + "/logs");
  ASSERT_TRUE(path) << path.error().message();
  const std::string bytes = contents_of(*path);
  size_t records = 0;
  for (size_t at = 0; at < bytes.size(); ++records) {
    uint64_t length = 0;
    uint32_t check = 0;
    ASSERT_LE(at + 12, bytes.size());
    std::memcpy(&length, &bytes[at], sizeof length);
    std::memcpy(&check, &bytes[at + 8], sizeof check);
    const uint32_t expected = crc32c(std::as_bytes(std::span(bytes).subspan(at, 8)), 0);
    EXPECT_EQ(check, (expected >> 15 | expected << 17) + 0xa282ead8U);
    ASSERT_LE(at + 16 + length, bytes.size());
    at += 16 + length;
  }
  EXPECT_EQ(records, 1u + 3 * 3);
  EXPECT_THAT(bytes, HasSubstr("world/allreduce/rank 2/seconds"));
}

TEST(Words, DurationsHaveThreeDigits) {
  EXPECT_EQ(duration_text(999), "999 ns");
  EXPECT_EQ(duration_text(1234), "1.23 us");
  EXPECT_EQ(duration_text(12'400'000'000), "12.4 s");
}

}  // namespace
}  // namespace ccom::tracetool
