// SPDX-License-Identifier: Apache-2.0
//
// Jobs on a host whose file systems are full - of bytes, or of files - end with success or an error with a text on all
// ranks, and leave nothing that the next job, which has room again, would find. Each is a small tmpfs in a mount
// namespace of this test's: for root alone.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/harness/folder.h"
#include "tests/harness/processes.h"
#include "tests/harness/waiting.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kRanks = 3;

bool has_own_mounts() {
  static const bool has =
      ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return has;
}

// A file system that can be filled and emptied again.
class SmallFolder {
 public:
  explicit SmallFolder(const fs::path& path, const std::string& size = "256k") : path_(path) {
    is_mounted_ =
        ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + size + ",nr_inodes=64,mode=1777").c_str()) == 0;
  }
  ~SmallFolder() {
    if (is_mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallFolder(const SmallFolder&) = delete;
  SmallFolder& operator=(const SmallFolder&) = delete;

  bool is_mounted() const { return is_mounted_; }
  const fs::path& path() const { return path_; }
  void fill(const std::string& kind) const {
    const bool is_bytes = kind == "bytes";
    for (int i = 0; i < (is_bytes ? 1 : 64); ++i) {
      std::ofstream file(path_ / ("fill-" + std::to_string(i)));
      if (is_bytes) file << std::string(256 << 10, 'x');
    }
  }
  // What is there beside that, of jobs.
  std::vector<std::string> others() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      const std::string name = entry.path().lexically_relative(path_);
      if (!name.starts_with("fill-") && !name.starts_with("ccom-test-")) names.push_back(name);
    }
    return names;
  }
  void empty() const {
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path().filename().string().starts_with("fill-")) fs::remove(entry.path());
    }
  }

 private:
  const fs::path path_;
  bool is_mounted_ = false;
};

class FullDisk : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!has_own_mounts()) GTEST_SKIP() << "not allowed to mount anything";
    fs::create_directory(base_ / "small");
  }

  // Of each rank: "done", or its error. All folders are filled before the first rank starts. Some errors take the
  // start's time: then that is short.
  std::vector<std::string> run(const Job::Environment& environment, const std::vector<const SmallFolder*>& filled,
                               bool may_time_out = false) {
    Job job("limited_program", kRanks, {"calls", "60"}, [&](int rank) {
      if (rank == 0) {
        for (const SmallFolder* folder : filled) folder->fill(GetParam());
      }
      Job::Environment added = environment;
      added.insert({"CCOM_URL", "file://" + base_ / "id"});
      added.insert({"CCOM_INIT_TIMEOUT_MS", may_time_out ? "2000" : "20000"});
      if (added.contains("PMIX_NAMESPACE")) {
        added["OMPI_COMM_WORLD_RANK"] = std::to_string(rank);
        added["OMPI_COMM_WORLD_SIZE"] = added["OMPI_COMM_WORLD_LOCAL_SIZE"] = std::to_string(kRanks);
        added["CCOM_URL"] = "";
      }
      return added;
    });
    EXPECT_TRUE(job.finish(milliseconds(40000))) << "a rank hangs\n" << job.transcript();
    std::vector<std::string> outcomes;
    for (int rank = 0; rank < kRanks; ++rank) {
      std::string text;
      for (const char* said : {"failed", "init", "done"}) {
        if (text.empty()) text = job.line(rank, said);
      }
      EXPECT_FALSE(text.empty()) << "rank " << rank << " died";
      std::printf("rank %d: %s\n", rank, text.c_str());
      outcomes.push_back(text);
    }
    return outcomes;
  }
  static std::vector<std::string> all_done() { return std::vector<std::string>(kRanks, "done"); }

  const TemporaryFolder base_{fs::current_path()};
};
INSTANTIATE_TEST_SUITE_P(Of, FullDisk, ::testing::Values("bytes", "files"), name_of_case);

TEST_P(FullDisk, UnderTheIdFileIsAnErrorAndLeavesNothing) {
  const SmallFolder folder(base_ / "small");
  ASSERT_TRUE(folder.is_mounted());
  const Job::Environment environment{{"CCOM_URL", "file://" + (folder.path() / "id").string()}};
  const auto outcomes = run(environment, {&folder}, true);
  EXPECT_NE(outcomes[0].find("No space left on device"), std::string::npos);
  EXPECT_EQ(folder.others(), std::vector<std::string>());
  folder.empty();
  EXPECT_EQ(run(environment, {}), all_done());
  EXPECT_EQ(folder.others(), std::vector<std::string>());
}

TEST_P(FullDisk, UnderTheRecordingsEndsNothingAndLeavesNothing) {
  const SmallFolder folder(base_ / "small");
  ASSERT_TRUE(folder.is_mounted());
  const Job::Environment environment{{"CCOM_RECORD", folder.path().string()}, {"CCOM_RECORD_BYTES", "262144"}};
  EXPECT_EQ(run(environment, {&folder}), all_done());
  EXPECT_EQ(folder.others(), std::vector<std::string>());
}

// The space is taken when the files are made, so that none of their pages is missing later.
TEST_P(FullDisk, ThatFillsUpUnderRecordingsEndsNothing) {
  const SmallFolder folder(base_ / "small", "1m");
  ASSERT_TRUE(folder.is_mounted());
  const Job::Environment environment{{"CCOM_RECORD", folder.path().string()}, {"CCOM_RECORD_BYTES", "262144"}};
  Job job("limited_program", kRanks, {"calls", "3000"}, [&](int) {
    Job::Environment added = environment;
    added.insert({"CCOM_URL", "file://" + base_ / "id"});
    return added;
  });
  ASSERT_TRUE(wait_until([&] { return folder.others().size() >= kRanks; })) << job.transcript();
  folder.fill(GetParam());
  EXPECT_TRUE(job.finish(milliseconds(60000))) << job.transcript();
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_EQ(job.line(rank, "done"), "done") << job.transcript();
}

TEST_P(FullDisk, UnderALaunchedJobsFolderIsAnErrorAndLeavesNothing) {
  const SmallFolder folder(base_ / "small");
  ASSERT_TRUE(folder.is_mounted());
  const Job::Environment environment{{"TMPDIR", folder.path()}, {"PMIX_NAMESPACE", "full-disk"}};
  const auto outcomes = run(environment, {&folder}, true);
  EXPECT_NE(outcomes[0].find("No space left on device"), std::string::npos);
  folder.empty();
  EXPECT_EQ(run(environment, {}), all_done());
  EXPECT_EQ(folder.others(), std::vector<std::string>());
}

TEST_P(FullDisk, UnderTemporaryFoldersLetsAnotherOneHandMemoryOver) {
  const SmallFolder folder(base_ / "small");
  ASSERT_TRUE(folder.is_mounted());
  EXPECT_EQ(run({{"TMPDIR", folder.path()}, {"XDG_RUNTIME_DIR", folder.path()}}, {&folder}), all_done());
  EXPECT_EQ(folder.others(), std::vector<std::string>());
}

// Bytes are not needed: a socket has none.
TEST_P(FullDisk, UnderAllTemporaryFoldersIsAnErrorOrSuccess) {
  const SmallFolder folder("/tmp"), other("/var/tmp"), memory("/dev/shm");
  ASSERT_TRUE(folder.is_mounted() && other.is_mounted() && memory.is_mounted());
  const auto outcomes =
      run({{"TMPDIR", "/tmp"}, {"XDG_RUNTIME_DIR", "/tmp"}}, {&folder, &other, &memory}, GetParam() == "files");
  for (const std::string& outcome : outcomes) {
    if (GetParam() == "bytes") {
      EXPECT_EQ(outcome, "done");
    } else {
      EXPECT_NE(outcome.find("No space left on device"), std::string::npos);
    }
  }
  EXPECT_EQ(folder.others(), std::vector<std::string>());
}

TEST_P(FullDisk, UnderTheTuningFileKeepsTheOldOne) {
  const SmallFolder folder(base_ / "small");
  ASSERT_TRUE(folder.is_mounted());
  const fs::path file = folder.path() / "tuning";
  Job::Environment environment{{"CCOM_TUNING_SAVE", file}};
  EXPECT_EQ(run(environment, {}), all_done());
  const std::string before = contents_of(file);
  EXPECT_FALSE(before.empty());
  EXPECT_EQ(run(environment, {&folder}), all_done());
  EXPECT_EQ(contents_of(file), before);
  EXPECT_EQ(folder.others(), std::vector<std::string>{"tuning"});
  environment["CCOM_TUNING"] = file;
  EXPECT_EQ(run(environment, {&folder}), all_done());
}

TEST_P(FullDisk, UnderTheLogDisturbsNobody) {
  const SmallFolder folder(base_ / "small");
  ASSERT_TRUE(folder.is_mounted());
  std::ofstream(folder.path() / "log").close();
  EXPECT_EQ(run({{"CCOM_LOG", "debug"}, {"CCOM_TEST_STDERR", folder.path() / "log"}}, {&folder}), all_done());
}

}  // namespace
}  // namespace ccom
