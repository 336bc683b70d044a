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
  std::vector<Recording> files{recording_of(0, 4), recording_of(1, 4), recording_of(2, 4)};
  for (int64_t number = 1; number <= 3; ++number) {
    for (Recording& file : files) {
      const int64_t late = &file == &files[1] ? 400'000 : 0;
      add_call(file, static_cast<uint64_t>(number), number * 1'000'000 + late, number * 1'000'000 + 500'000);
    }
  }
  add_call(files[0], 4, 4'000'000, std::nullopt);
  add_call(files[2], 4, 4'000'000, std::nullopt);
  files[0].calls.back().waited_for = files[2].calls.back().waited_for = 1;
  files[0].last_ns = 2'004'000'000;
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
  const Folder folder;
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
