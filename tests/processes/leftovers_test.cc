// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are killed while they start, at random instants: the next job starts as usual, and after it nothing of
// them is left, neither a file with a secret nor a socket. CCOM_TEST_LONG=1: 50 kills of each kind of job;
// CCOM_TEST_SEED.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tests/harness/child.h"
#include "tests/harness/effort.h"
#include "tests/harness/folder.h"
#include "tests/harness/paths.h"

namespace ccom {
namespace {

class Leftovers : public ::testing::TestWithParam<const char*> {
 protected:
  // The rendezvous is a file, or a folder that is derived from the launcher's number of the job.
  std::unique_ptr<Child> start(int rank, int job) const {
    return std::make_unique<Child>(
        [=, this, program = program("rank_program")] { return become_rank(program, rank, job); }, 300);
  }
  int become_rank(const std::string& program, int rank, int job) const {
    const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
    set("CCOM_RANK", std::to_string(rank));
    set("CCOM_NRANKS", "2");
    set("CCOM_SOCKET_IFNAME", "lo");
    set("TMPDIR", folder_.path());
    set("XDG_RUNTIME_DIR", folder_.path());
    if (std::string(GetParam()) == "File") {
      set("CCOM_URL", "file://" + folder_ / "id");
    } else {
      ::unsetenv("CCOM_URL");
      set("OMPI_COMM_WORLD_RANK", std::to_string(rank));
      set("OMPI_COMM_WORLD_SIZE", "2");
      set("OMPI_COMM_WORLD_LOCAL_SIZE", "2");
      set("PMIX_NAMESPACE", "job" + std::to_string(job));
    }
    if (::freopen(said_.c_str(), "a", stdout) == nullptr || ::freopen(said_.c_str(), "a", stderr) == nullptr) return 9;
    ::execl(program.c_str(), "rank_program", "end", "destroy", nullptr);
    return 9;
  }
  const TemporaryFolder folder_, output_;
  const std::string said_ = output_ / "said";
};
INSTANTIATE_TEST_SUITE_P(Kinds, Leftovers, ::testing::Values("File", "Launcher"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(Leftovers, AreGoneAfterTheNextJob) {
  const uint64_t used = test_seed();
  SCOPED_TRACE("CCOM_TEST_SEED=" + std::to_string(used));
  std::mt19937_64 random(used);
  const int kills = is_long() ? 50 : 12;
  int left = 0;
  for (int job = 0; job < kills; ++job) {
    const auto rank0 = start(0, job), rank1 = start(1, job);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 200));
    rank0->kill();
    if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
    rank1->kill();
    if (!folder_.list().empty()) ++left;
  }
  const auto rank0 = start(0, kills), rank1 = start(1, kills);
  EXPECT_EQ(rank0->wait(), 0) << contents_of(said_);
  EXPECT_EQ(rank1->wait(), 0) << contents_of(said_);
  EXPECT_EQ(folder_.list(), "") << left << " of " << kills << " kills had left something";
  RecordProperty("left_by_kills", left);
}

}  // namespace
}  // namespace ccom
