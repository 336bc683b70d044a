// SPDX-License-Identifier: Apache-2.0
//
// The launcher: what children get, how the job ends when one of them fails, hangs or crashes, and that nothing is left.
// The parent runs in a program of its own (processes_child), because launching wants a process with one thread.
#include "bench/launch/processes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "tests/harness/folder.h"
#include "tests/harness/paths.h"

namespace ccom::launch {
namespace {

using ::testing::HasSubstr;

struct Result {
  int code = -1;
  std::string text;  // stdout and stderr
};

Result run(const std::string& arguments, const std::string& variable = "") {
  Result result;
  const std::string command = "env -u CCOM_RANK -u CCOM_NRANKS -u CCOM_URL " + variable + " " +
                              program("bench_launch_child") + " start " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 512> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) result.text += part.data();
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

TEST(RunProcesses, GivesEachRankItsPlaceAndAPrivateFolderThatIsRemoved) {
  const Result result = run("2 10000 report report");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.text, HasSubstr("rank 0 of 2"));
  EXPECT_THAT(result.text, HasSubstr("rank 1 of 2"));
  EXPECT_THAT(result.text, HasSubstr("mode 700"));
  std::string word;
  std::string folder;
  for (std::istringstream words(result.text); words >> word;) {
    if (word == "folder") words >> folder;
  }
  ASSERT_FALSE(folder.empty());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// U15: what a launcher had made that was killed stayed for good, with the id in it.
TEST(RunProcesses, RemovesWhatAKilledLauncherHasLeft) {
  const TemporaryFolder place;
  const std::string variable = "TMPDIR=" + place.path();
  Result killed = run("1 10000 kill_launcher", variable);
  ASSERT_EQ(entries_of(place.path()), 1) << killed.text;
  const std::string left = std::filesystem::directory_iterator(place.path())->path();
  run("1 10000 good", variable);
  EXPECT_TRUE(std::filesystem::exists(left)) << "it is too new: its launcher may just be about to lock it";
  std::filesystem::last_write_time(left, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
  const std::string used = place.path() + "/ccom-run-used", others = place.path() + "/ccom-others";
  std::filesystem::create_directory(used);
  std::filesystem::create_directory(others);
  for (const std::string& path : {used, others})
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(2));
  const int lock = ::open(used.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  run("1 10000 good", variable);
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(used));
  EXPECT_TRUE(std::filesystem::exists(others));
  ::close(lock);
  run("1 10000 good", variable);
  EXPECT_FALSE(std::filesystem::exists(used));
}

TEST(RunProcesses, NamesThePlaceWhereItCanMakeNoFolder) {
  const Result result = run("2 10000 report report", "TMPDIR=/nonexistent");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.text, "ccom: cannot make a temporary folder in TMPDIR=/nonexistent: No such file or directory\n");
}

TEST(RunProcesses, IsGoodOnlyIfAllAre) {
  EXPECT_EQ(run("3 10000 good good good").code, 0);
  EXPECT_EQ(run("3 10000 good 1 good").code, 1);
}

TEST(RunProcesses, GivesTheMostTellingCode) {
  EXPECT_EQ(run("3 10000 1 4 5").code, 4);
  EXPECT_EQ(run("3 10000 3 4 1").code, 3);
  EXPECT_EQ(run("3 10000 2 5 2").code, 5);
}

TEST(RunProcesses, EndsTheOthersSoonAfterTheFirstFailure) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run("3 60000 sleep 4 sleep").code, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(RunProcesses, NamesTheRankThatCrashed) {
  const Result result = run("2 10000 good crash");
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.text, HasSubstr("rank 1 was ended by signal 9"));
}

TEST(RunProcesses, EndsAJobThatIsLate) {
  const Result result = run("2 300 sleep sleep");
  EXPECT_EQ(result.code, 5);
  EXPECT_THAT(result.text, HasSubstr("timeout after"));
}

TEST(RunProcesses, RefusesToStartRanksFromARank) {
  const Result result = run("1 10000 again");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.text, HasSubstr("CCOM_RANK is set"));
}

TEST(MoreTelling, PrefersCausesToConsequences) {
  EXPECT_EQ(more_telling(ExitCode::Ok, ExitCode::TooSlow), ExitCode::TooSlow);
  EXPECT_EQ(more_telling(ExitCode::WrongData, ExitCode::TooSlow), ExitCode::WrongData);
  EXPECT_EQ(more_telling(ExitCode::Timeout, ExitCode::Communication), ExitCode::Communication);
  EXPECT_EQ(more_telling(ExitCode::Usage, ExitCode::Communication), ExitCode::Usage);
}

}  // namespace
}  // namespace ccom::launch
