// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are killed while they start, at random instants: the next job starts as usual, and after it nothing of
// them is left, neither a file with a secret nor a socket. CCOM_TEST_LONG=1: 50 kills of each kind of job;
// CCOM_TEST_SEED.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/effort.h"
#include "tests/harness/paths.h"

namespace {

namespace fs = std::filesystem;

class Leftovers : public ::testing::TestWithParam<const char*> {
 protected:
  Leftovers() {
    std::string pattern = (fs::temp_directory_path() / "leftovers-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    said_ = folder_ + ".said";
  }
  ~Leftovers() override {
    fs::remove_all(folder_);
    fs::remove(said_);
  }

  // The rendezvous is a file, or a folder that is derived from the launcher's number of the job.
  pid_t start(int rank, int job) const {
    const std::string rank_program = ccom::program("rank_program");
    const pid_t process = ::fork();
    if (process != 0) return process;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
    set("CCOM_RANK", std::to_string(rank));
    set("CCOM_NRANKS", "2");
    set("CCOM_SOCKET_IFNAME", "lo");
    set("TMPDIR", folder_);
    set("XDG_RUNTIME_DIR", folder_);
    if (std::string(GetParam()) == "File") {
      set("CCOM_URL", "file://" + folder_ + "/id");
    } else {
      ::unsetenv("CCOM_URL");
      set("OMPI_COMM_WORLD_RANK", std::to_string(rank));
      set("OMPI_COMM_WORLD_SIZE", "2");
      set("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
      set("PMIX_NAMESPACE", "job" + std::to_string(job));
    }
    if (::freopen(said_.c_str(), "a", stdout) == nullptr || ::freopen(said_.c_str(), "a", stderr) == nullptr)
      ::_exit(9);
    ::execl(rank_program.c_str(), "rank_program", "end", "destroy", nullptr);
    ::_exit(9);
  }
  static int finish(pid_t process) {
    int status = -1;
    ::waitpid(process, &status, 0);
    return status;
  }
  // The ranks, by now.
  std::string said() const {
    std::stringstream text;
    text << std::ifstream(said_).rdbuf();
    return text.str();
  }
  std::string list() const {
    std::string names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) names += entry.path().string() + "\n";
    return names;
  }

  std::string folder_, said_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, Leftovers, ::testing::Values("File", "Launcher"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(Leftovers, AreGoneAfterTheNextJob) {
  const uint64_t used = ccom::test_seed();
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(used));
  std::mt19937_64 random(used);
  const int kills = ccom::is_long() ? 50 : 12;
  int left = 0;
  for (int job = 0; job < kills; ++job) {
    const pid_t rank0 = start(0, job), rank1 = start(1, job);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    ::kill(rank0, SIGKILL);
    finish(rank0);
    if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
    ::kill(rank1, SIGKILL);
    finish(rank1);
    if (!list().empty()) ++left;
  }
  const pid_t rank0 = start(0, kills), rank1 = start(1, kills);
  EXPECT_EQ(finish(rank0), 0) << said();
  EXPECT_EQ(finish(rank1), 0) << said();
  EXPECT_EQ(list(), "") << left << " of " << kills << " kills had left something";
  RecordProperty("left_by_kills", left);
}

}  // namespace
