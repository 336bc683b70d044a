// SPDX-License-Identifier: Apache-2.0
//
// What real ranks log: lines say their room, rank and communicator, as text and as JSON, at the levels of their rooms;
// many parts do not flood the log; and whatever happens to lines, calls and heartbeats go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// The value of a field of a line of JSON that is a text without escapes, or a number; "" if it is not there.
std::string field(const std::string& line, const std::string& name) {
  const std::string begin = "\"" + name + "\":";
  const size_t at = line.find(begin);
  if (at == std::string::npos) return "";
  const size_t from = at + begin.size();
  return line[from] == '"' ? line.substr(from + 1, line.find('"', from + 1) - from - 1)
                           : line.substr(from, line.find_first_of(",}", from) - from);
}

struct Said {
  std::vector<std::string> lines;  // of all ranks
  std::string one_with(const std::string& part) const {
    const auto found =
        std::ranges::find_if(lines, [&](const auto& line) { return line.find(part) != std::string::npos; });
    return found != lines.end() ? *found : "";
  }
};

Said life_of(int nranks, const Job::Environment& added, const std::vector<std::string>& arguments = {"lines"}) {
  Job job("logs_program", nranks, arguments, [&](int) { return added; });
  EXPECT_TRUE(job.finish(milliseconds(60000))) << job.transcript();
  Said said;
  for (int rank = 0; rank < nranks; ++rank) {
    EXPECT_EQ(job.line(rank, "done"), "done") << job.transcript();
    for (const std::string& line : job.lines(rank)) said.lines.push_back(line);
  }
  return said;
}

TEST(LogLines, SayTheRoomThatHasLoggedThem) {
  const Said said = life_of(2, {{"CCOM_LOG", "debug"}, {"CCOM_LOG_FORMAT", "json"}, {"CCOM_TRASNPORT", "shm"}});
  const std::map<std::string, std::string> rooms = {{" of a communicator of 2", "comm"},
                                                    {"rendezvous at file:", "bootstrap"},
                                                    {"out of reach", "memory"},
                                                    {"no such variable", "base"}};
  for (const auto& [part, room] : rooms) EXPECT_EQ(field(said.one_with(part), "room"), room) << part;
  for (const std::string& line : said.lines) {
    EXPECT_TRUE(line == "done" || line.starts_with("{\"time\":\"")) << line;
  }
}

TEST(LogLines, SayTheRankAndTheCommunicator) {
  const Said said = life_of(3, {{"CCOM_LOG", "debug"}, {"CCOM_LOG_FORMAT", "json"}});
  std::set<std::string> ranks, communicators;
  for (const std::string& line : said.lines) {
    if (line.find(" of a communicator of 3") == std::string::npos) continue;
    ranks.insert(field(line, "rank"));
    communicators.insert(field(line, "communicator"));
  }
  EXPECT_EQ(ranks, (std::set<std::string>{"0", "1", "2"}));
  EXPECT_EQ(communicators.size(), 1U);
  EXPECT_EQ(communicators.begin()->size(), 16U);
}

TEST(LogLines, FollowTheLevelsOfTheirRooms) {
  const Said said = life_of(2, {{"CCOM_LOG", "error,comm=info,bootstrap=info"}});
  EXPECT_NE(said.one_with("info (comm): ccom "), "");
  EXPECT_NE(said.one_with("info (bootstrap): rank 0: rendezvous at"), "");
  EXPECT_EQ(said.one_with("(memory)"), "");
  EXPECT_EQ(said.one_with("debug"), "");
}

TEST(LogLines, OfAWrongRoomOrFormatAreAnErrorAtTheStart) {
  const auto refusal = [](const Job::Environment& added) {
    Job job("logs_program", 1, {"lines"}, [&](int) { return added; });
    EXPECT_TRUE(job.finish(milliseconds(60000)));
    return job.line(0, "init");
  };
  EXPECT_THAT(refusal({{"CCOM_LOG", "warn,bootstrp=debug"}}), HasSubstr("did you mean bootstrap?"));
  EXPECT_THAT(refusal({{"CCOM_LOG_FORMAT", "xml"}}), HasSubstr("CCOM_LOG_FORMAT=xml: there are text and json"));
}

// Each was a line before.
TEST(LogLines, OfManyPartsAreFew) {
  const Said said = life_of(2, {{"CCOM_LOG", "info"}}, {"parts", "200"});
  int lines = 0;
  int parts = 0;
  for (const std::string& line : said.lines) {
    if (line.find("rank 0 of a part of 2") == std::string::npos) continue;
    ++lines;
    const size_t count = line.find(" (and ");
    parts += 1 + (count == std::string::npos ? 0 : std::atoi(line.c_str() + count + 6));
  }
  EXPECT_EQ(parts, 200) << "each is counted";
  EXPECT_LT(lines, 100);
  EXPECT_NE(said.one_with("rank 0 of a communicator of 2"), "") << "that of the whole is said";
}

// A ratio of medians of times that alternate. Lines that the pipe does not take are counted, and told when it is read.
TEST(LogLines, AreNoReasonToWaitForCalls) {
  Job job("logs_program", 2, {"rate"}, [](int) { return Job::Environment{{"CCOM_LOG", "info"}}; });
  ASSERT_TRUE(job.finish(milliseconds(120000))) << job.transcript();
  for (int rank = 0; rank < 2; ++rank) {
    const auto number = [&](const std::string& name) {
      const std::string line = job.line(rank, name);
      return line.empty() ? -1 : std::atof(line.c_str() + name.size());
    };
    std::printf("rank %d: %s, %s, %s, %s\n", rank, job.line(rank, "ratio ").c_str(), job.line(rank, "logged ").c_str(),
                job.line(rank, "out ").c_str(), job.line(rank, "dropped ").c_str());
    EXPECT_GT(number("ratio "), 0) << job.transcript();
    EXPECT_LT(number("ratio "), 3);
    EXPECT_GT(number("dropped "), 0);
    EXPECT_GE(number("out ") + number("dropped "), number("logged ")) << "some before the pipe may be lost, too";
    EXPECT_LT(number("out "), number("logged "));
  }
}

class LinesMeet : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(A, LinesMeet, ::testing::Values("blocked", "unread", "full", "closed"), name_of_case);

// Rank 0 says lines all the time, of calls and, as rank 1 is stopped, of its heartbeats. The limit is far below the
// time.
TEST_P(LinesMeet, AndCallsAndHeartbeatsGoOn) {
  for (const std::string transport : {"shm", "mixed"}) {
    Job job("logs_program", 4, {GetParam(), "4"}, [&](int rank) {
      Job::Environment added = environment_for(transport, rank);
      added.insert({"CCOM_LOG", rank == 0 || GetParam() == "closed" ? "debug" : "error"});
      added.insert({"CCOM_DEAD_MS", "1500"});
      return added;
    });
    ASSERT_TRUE(job.wait_for("ready", {0, 1, 2, 3}, milliseconds(60000))) << transport << "\n" << job.transcript();
    job.signal(1, SIGSTOP);
    std::this_thread::sleep_for(milliseconds(500));  // below CCOM_DEAD_MS
    job.signal(1, SIGCONT);
    EXPECT_TRUE(job.wait_for("done", {0, 1, 2, 3}, milliseconds(30000))) << transport << "\n" << job.transcript();
    EXPECT_TRUE(job.finish(milliseconds(10000))) << transport << ": a rank's end hangs";
  }
}

}  // namespace
}  // namespace ccom
