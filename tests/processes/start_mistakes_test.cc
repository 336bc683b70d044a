// SPDX-License-Identifier: Apache-2.0
//
// Ranks that were started with contradicting numbers or settings are told so long before the start's time is up, all.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kSoon{30000};  // of the 60 s that a start may take; 10 s and a busy machine
constexpr char kKey[] = "[CCOM-E048]";

std::string free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(socket);
  return std::to_string(ntohs(address.sin_port));
}

TEST(StartMistakes, TwoRanks0AtAnAddressAreToldToBoth) {
  const std::string url = "tcp://127.0.0.1:" + free_port();
  Job job("rank_program", 2, {"loop", "8"}, [&](int) {
    return Job::Environment{{"CCOM_RANK", "0"}, {"CCOM_URL", url}};
  });
  ASSERT_TRUE(job.wait_for("init 36 [0]", {0, 1}, kSoon)) << job.transcript();
  for (const int process : {0, 1}) {
    EXPECT_THAT(job.line(process, "init"), HasSubstr("rank 0 joined twice: process "));
    EXPECT_THAT(job.line(process, "init"), HasSubstr(kKey));
  }
  EXPECT_TRUE(job.finish(kSoon));
}

// The ranks that come use the later file, so its rank 0 may wait for them.
TEST(StartMistakes, ASecondRank0WithAFileIsToldToTheFirst) {
  Job job("rank_program", 2, {"loop", "8"}, [&](int) { return Job::Environment{{"CCOM_RANK", "0"}}; });
  const auto told = [&job](int process) { return job.wait_for("init 36 [0]", {process}, milliseconds(100)); };
  const auto end = std::chrono::steady_clock::now() + kSoon;
  while (!told(0) && !told(1)) ASSERT_LT(std::chrono::steady_clock::now(), end) << job.transcript();
  const std::string line = job.line(told(0) ? 0 : 1, "init");
  EXPECT_THAT(line, HasSubstr("rank 0 joined twice: process "));
  EXPECT_THAT(line, HasSubstr(kKey));
}

TEST(StartMistakes, AnotherNumberOfRanksIsToldToBoth) {
  for (const std::string& url : {std::string(), "tcp://127.0.0.1:" + free_port()}) {
    Job job("rank_program", 2, {"loop", "8"}, [&](int rank) {
      Job::Environment environment{{"CCOM_NRANKS", rank == 0 ? "2" : "3"}};
      if (!url.empty()) environment["CCOM_URL"] = url;
      return environment;
    });
    ASSERT_TRUE(job.wait_for("init 36 [0,1]", {0, 1}, kSoon)) << job.transcript();
    for (const int rank : {0, 1}) {
      EXPECT_THAT(job.line(rank, "init"), HasSubstr(" was started with "));
      EXPECT_THAT(job.line(rank, "init"), HasSubstr(kKey));
    }
    EXPECT_TRUE(job.finish(kSoon));
  }
}

// Whoever asks for encryption gets it or an error, never bytes in the clear.
TEST(StartMistakes, EncryptionOnATransportThatHasNoneIsRefused) {
  Job job("rank_program", 2, {"loop", "8"}, ranks_on("ofi", {{"CCOM_TLS", "1"}}));
  ASSERT_TRUE(job.wait_for("init 36", {0, 1}, kSoon)) << job.transcript();
  for (const int rank : {0, 1}) {
    EXPECT_THAT(job.line(rank, "init"), HasSubstr("CCOM_TLS=1: transport ofi cannot encrypt"));
    EXPECT_THAT(job.line(rank, "init"), HasSubstr("set CCOM_TRANSPORT=shm,tcp, or CCOM_TLS=0"));
  }
  EXPECT_TRUE(job.finish(kSoon));
}

}  // namespace
}  // namespace ccom
