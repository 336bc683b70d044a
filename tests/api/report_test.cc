// SPDX-License-Identifier: Apache-2.0
//
// ccomCommReport: ranks as threads, of which one is late on purpose, on one host and on two; wrong arguments; what a
// communicator says of it when it ends.
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/harness/environment.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

using nlohmann::json;

std::string report_of(ccomComm_t comm, int nranks, int flags) {
  std::string text(16384 + 256 * static_cast<size_t>(nranks), '?');
  size_t length = text.size();
  EXPECT_OK(ccomCommReport(comm, flags, text.data(), &length));
  return text.substr(0, length - 1);
}

using Clock = std::chrono::steady_clock;
const Clock::time_point kBegin = Clock::now();

// That rank is late by more than half of the time, however slow the start and the first call are.
void train(int rank, int late, ccomComm_t comm) {
  ccomSetCallSite("train.py:88 (step)");
  for (int step = 0; step < 10; ++step) {
    if (rank == late) std::this_thread::sleep_for(std::chrono::milliseconds(30) + (Clock::now() - kBegin) / 10);
    float value = 1;
    ASSERT_OK(ccomAllReduce(&value, &value, 1, ccomFloat32, ccomSum, comm, nullptr));
  }
  ccomSetCallSite("");
}

TEST(Report, NamesWhoIsLateAndWhere) {
  with_ranks(4, [](int rank, ccomComm_t comm) {
    train(rank, 3, comm);
    const json object = json::parse(report_of(comm, 4, ccomReportJson), nullptr, false);
    ASSERT_TRUE(object.is_object());
    EXPECT_EQ(object["known_ranks"], 4);
    ASSERT_GE(object["stragglers"].size(), 1U);
    const json& worst = object["stragglers"][0];
    EXPECT_EQ(worst["rank"], 3);
    EXPECT_EQ(worst["passed_on"], false);
    EXPECT_EQ(worst["seen_by"], 3);
    EXPECT_GT(worst["seconds"], 0.15);  // half of its 10 times 30 ms: on a loaded machine the others come late too
    EXPECT_GT(worst["share"], 0.3);
    EXPECT_EQ(worst["place"]["site"], "train.py:88 (step)");
    EXPECT_EQ(worst["place"]["collective"], "allreduce");
    EXPECT_GE(worst["place"]["longest_call"], 1);
    EXPECT_LE(worst["place"]["longest_call"], 10);
    EXPECT_THAT(report_of(comm, 4, rank == 1 ? ccomReportHost : 0),
                testing::ContainsRegex("rank 3 made the others wait"));
    if (rank == 1) report_of(comm, 4, 0);  // as the others
  });
}

TEST(Report, IsAboutAllHostsOrOne) {
  with_ranks({.hosts = {0, 1, 0, 1}}, [](int rank, ccomComm_t comm) {
    train(rank, 1, comm);
    EXPECT_EQ(json::parse(report_of(comm, 4, ccomReportJson | ccomReportHost), nullptr, false)["known_ranks"], 2);
    EXPECT_THAT(report_of(comm, 4, ccomReportHost), HasSubstr("without what 2 of 4 ranks say"));
    const json object = json::parse(report_of(comm, 4, ccomReportJson), nullptr, false);
    EXPECT_EQ(object["known_ranks"], 4);
    EXPECT_EQ(object["stragglers"][0]["rank"], 1) << object;
  });
}

TEST(Report, RefusesWrongArguments) {
  with_ranks(1, [](int, ccomComm_t comm) {
    char text[8];
    size_t length = sizeof text;
    EXPECT_EQ(ccomCommReport(nullptr, 0, text, &length), ccomInvalidArgument);
    EXPECT_EQ(ccomCommReport(comm, 0, text, nullptr), ccomInvalidArgument);
    EXPECT_EQ(ccomCommReport(comm, 4, text, &length), ccomInvalidArgument);
    EXPECT_EQ(ccomCommReport(comm, 0, text, &length), ccomInvalidArgument) << "too small a buffer";
    EXPECT_GT(length, sizeof text);
    EXPECT_OK(ccomCommReport(comm, 0, nullptr, &length));
    ASSERT_OK(ccomGroupStart());
    EXPECT_EQ(ccomCommReport(comm, 0, nullptr, &length), ccomInvalidUsage);
    ASSERT_OK(ccomGroupEnd());
    ASSERT_OK(ccomCommFinalize(comm));
    EXPECT_EQ(ccomCommReport(comm, 0, nullptr, &length), ccomInvalidUsage);
    EXPECT_OK(ccomCommReport(comm, ccomReportHost, nullptr, &length));
  });
}

TEST(Report, OfTheHostWorksAfterAnError) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    train(rank, 0, comm);
    if (rank == 0) ccomCommAbort(comm);
    EXPECT_THAT(report_of(comm, 2, ccomReportHost), HasSubstr("rank 0 made the others wait"));
  });
}

std::string said_at_the_end(const char* setting) {
  const ScopedVariable report("CCOM_REPORT", setting);
  testing::internal::CaptureStderr();
  with_ranks(4, [](int rank, ccomComm_t comm) { train(rank, 3, comm); });
  return testing::internal::GetCapturedStderr();
}

TEST(Report, IsWrittenAtTheEndIfThatIsAskedFor) {
  const std::string said = said_at_the_end("1");
  EXPECT_THAT(said, testing::ContainsRegex("rank 3 made the others wait [0-9]+ % of the time .* as 3 of 3 say.* before "
                                           "allreduce at train.py:88 .step."));
  EXPECT_EQ(said.find("waits since"), said.rfind("waits since")) << "by one rank, once: " << said;
  EXPECT_EQ(said_at_the_end("0"), "");
}

}  // namespace
}  // namespace ccom
