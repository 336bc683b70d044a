// SPDX-License-Identifier: Apache-2.0
//
// Jobs with a rank whose descriptors, address space, memory or threads are limited - by rlimits and by real control
// groups - end with success or an error with a text on all ranks: nobody hangs, and no rank dies once all have met. And
// groups that are made and destroyed leave nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

struct Outcome {
  std::string text;      // "done", "failed ...", "init ..." or "": died
  bool has_met = false;  // all ranks had when it ended
};

std::vector<Outcome> run_with(const std::string& transport, const std::string& limit) {
  Job job("limited_program", 3, {"calls"}, [&](int rank) {
    Job::Environment more{{"CCOM_INIT_TIMEOUT_MS", "3000"}, {"CCOM_TIMEOUT_MS", "5000"}};
    if (rank == 1) more["CCOM_TEST_LIMIT"] = limit;
    return ranks_on(transport, more)(rank);
  });
  EXPECT_TRUE(job.finish(milliseconds(40000))) << transport << ", " << limit << ": a rank hangs\n" << job.transcript();
  std::vector<Outcome> outcomes;
  for (int rank = 0; rank < 3; ++rank) {
    std::string text;
    for (const char* said : {"failed", "init", "done"}) {
      if (text.empty()) text = job.line(rank, said);
    }
    outcomes.push_back({text, !job.line(rank, "met").empty()});
    EXPECT_TRUE(job.line(rank, "wrong").empty()) << transport << ", " << limit;
  }
  return outcomes;
}

// What happened to the job, in a word for the table.
std::string check(const std::string& transport, const std::string& limit) {
  const std::vector<Outcome> outcomes = run_with(transport, limit);
  const Outcome& limited = outcomes[1];
  const std::string where = transport + ", " + limit;
  for (const int rank : {0, 2}) {
    const std::string& text = outcomes[static_cast<size_t>(rank)].text;
    EXPECT_FALSE(text.empty()) << where << ": rank " << rank << ", which is not limited, died";
    if (limited.text == "done") {
      EXPECT_EQ(text, "done") << where;
    } else if (text != "done") {
      EXPECT_GT(text.size(), text.find(']') + 20) << where << ": rank " << rank << " has an error without a text";
    }
  }
  if (limited.text.empty()) {
    // A library below may end the process while ranks meet (docs/reliability.md), never one that has met.
    EXPECT_FALSE(limited.has_met) << where << ": died in a call";
    return "died while ranks met";
  }
  if (limited.text == "done") return "done";
  EXPECT_GT(limited.text.size(), limited.text.find(']') + 20) << where << ": an error without a text";
  return limited.has_met ? "error of a call" : "error of the start";
}

void print(const std::string& transport, const std::string& limit, const std::string& outcome) {
  std::printf("%s, %s: %s\n", transport.c_str(), limit.c_str(), outcome.c_str());
}

// A transport, and some values of a limit.
struct Some {
  std::string transport;
  long first, last, step;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
void PrintTo(const Some& some, std::ostream* out) { *out << some.transport << " " << some.first; }
const auto name_of_some = [](const auto& of) { return of.param.transport + "_from_" + std::to_string(of.param.first); };

// All values, cut into cases of at most so many.
auto cut(const std::vector<std::string>& transports, Some all, long values) {
  std::vector<Some> cases;
  for (const std::string& transport : transports) {
    for (long first = all.first; first <= all.last; first += values * all.step)
      cases.push_back({transport, first, std::min(all.last, first + (values - 1) * all.step), all.step});
  }
  return testing::ValuesIn(cases);
}

class LimitsOfDescriptors : public testing::TestWithParam<Some> {};
INSTANTIATE_TEST_SUITE_P(On, LimitsOfDescriptors, cut({"shm", "tcp", "ofi"}, {"", 8, 96, 1}, 3), name_of_some);

TEST_P(LimitsOfDescriptors, AreAnError) {
  const Some& some = GetParam();
  for (long limit = some.first; limit <= some.last; limit += some.step) {
    print(some.transport, std::to_string(limit) + " descriptors",
          check(some.transport, "nofile:" + std::to_string(limit)));
  }
}

class LimitsOfAddressSpace : public testing::TestWithParam<Some> {};
INSTANTIATE_TEST_SUITE_P(On, LimitsOfAddressSpace, cut({"shm", "tcp"}, {"", 40, 700, 20}, 3), name_of_some);

TEST_P(LimitsOfAddressSpace, AreAnError) {
  const Some& some = GetParam();
  for (long mib = some.first; mib <= some.last; mib += some.step) {
    print(some.transport, "address space of " + std::to_string(mib) + " MiB",
          check(some.transport, "as:" + std::to_string(mib << 20)));
  }
}

// A control group of this test's, in version 1 or 2 of their file system; nothing where it cannot be made.
class ControlGroup {
 public:
  ControlGroup(const std::string& controller, const std::string& v1_file, const std::string& v2_file, long value) {
    for (const auto& [root, file] :
         {std::pair{"/sys/fs/cgroup/" + controller, v1_file}, std::pair{std::string("/sys/fs/cgroup"), v2_file}}) {
      const fs::path folder = fs::path(root) / ("ccom-test-" + std::to_string(::getpid()));
      std::error_code failure;
      if (!fs::exists(fs::path(root) / "cgroup.procs", failure) || !fs::create_directory(folder, failure)) continue;
      folder_ = folder;
      std::ofstream limit(folder / file);
      limit << value << std::flush;
      if (limit) return;
      fs::remove(folder, failure);
      folder_.clear();
    }
  }
  ~ControlGroup() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

void check_group(const std::string& transport, const std::string& controller, const std::string& v1_file,
                 const std::string& v2_file, long value, const std::string& text) {
  const ControlGroup group(controller, v1_file, v2_file, value);
  if (group.folder().empty()) GTEST_SKIP() << "no control group can be made here";
  print(transport, text, check(transport, controller + ":" + group.folder()));
}

class LimitsOfThreads : public testing::TestWithParam<Some> {};
INSTANTIATE_TEST_SUITE_P(On, LimitsOfThreads, cut({"shm", "tcp"}, {"", 1, 40, 1}, 3), name_of_some);

TEST_P(LimitsOfThreads, OfAControlGroupAreAnError) {
  const Some& some = GetParam();
  for (long threads = some.first; threads <= some.last && !IsSkipped(); threads += some.step)
    check_group(some.transport, "pids", "pids.max", "pids.max", threads, std::to_string(threads) + " threads");
}

class LimitsOfMemory : public testing::TestWithParam<Some> {};
INSTANTIATE_TEST_SUITE_P(On, LimitsOfMemory, cut({"shm", "tcp"}, {"", 48, 304, 16}, 3), name_of_some);

// Less than a program with these libraries takes itself is the kernel's affair: it kills.
TEST_P(LimitsOfMemory, OfAControlGroupAreAnError) {
  const Some& some = GetParam();
  for (long mib = some.first; mib <= some.last && !IsSkipped(); mib += some.step) {
    check_group(some.transport, "memory", "memory.limit_in_bytes", "memory.max", mib << 20,
                std::to_string(mib) + " MiB");
  }
}

// Each rank takes what the group has left, at the same time as the others: together they take no more than it has,
// where the kernel would kill one of them.
class SharedMemoryOfAGroup : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Mib, SharedMemoryOfAGroup, testing::Values("16", "64", "200"), name_of_case);

TEST_P(SharedMemoryOfAGroup, ForAllRanksIsAnError) {
  constexpr long kLimitMib = 384;
  const ControlGroup group("memory", "memory.limit_in_bytes", "memory.max", kLimitMib << 20);
  if (group.folder().empty()) GTEST_SKIP() << "no control group can be made here";
  Job job("limited_program", 4, {"memory", is_long() ? "50" : "2", GetParam()}, [&](int) {
    return Job::Environment{{"CCOM_TEST_LIMIT", "memory:" + group.folder()}};
  });
  ASSERT_TRUE(job.finish(milliseconds(is_long() ? 600000 : 60000))) << job.transcript();
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_FALSE(job.line(rank, "done").empty()) << "rank " << rank << " died\n" << job.transcript();
    const std::string took = job.line(rank, "took");
    EXPECT_NE(took.find("bytes of shared memory"), std::string::npos) << took;
    std::printf("%s\n", took.c_str());
  }
}

std::vector<std::vector<long>> used_by(const Job& job, int rank) {
  std::vector<std::vector<long>> all;
  for (const std::string& line : job.lines(rank)) {
    if (!line.starts_with("used ")) continue;
    std::istringstream words(line.substr(5));
    std::vector<long> numbers;
    for (long number = 0; words >> number;) numbers.push_back(number);
    all.push_back(numbers);
  }
  return all;
}

// Bytes in use tell a leak from what the allocator keeps for itself, which also grows, ever more slowly: each of gRPC's
// threads that come and go may free into another arena, and has a cache, whose content counts as in use and is off
// here.
class Groups : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(On, Groups, testing::Values("shm", "tcp", "ofi", "mixed"), name_of_case);

TEST_P(Groups, MadeAndDestroyedLeaveNothing) {
  const int times = is_long() ? 10000 : 60;
  const std::string& transport = GetParam();
  Job job("limited_program", 4, {"groups", std::to_string(times)},
          ranks_on(transport, {{"GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"}}));
  ASSERT_TRUE(job.finish(milliseconds(is_long() ? 3000000 : 60000))) << transport << "\n" << job.transcript();
  for (int rank = 0; rank < 4; ++rank) {
    const auto used = used_by(job, rank);
    ASSERT_EQ(used.size(), 2u) << transport << "\n" << job.transcript();
    // gRPC's threads come and go with what wakes them; one of anything per group would be many times as much.
    const char* const kinds[] = {"descriptors", "threads", "mappings", "resident KiB", "bytes in use"};
#ifdef __SANITIZE_ADDRESS__
    constexpr long kMostKib = 512 << 10, kMostMappings = 48;  // it keeps what was freed
#else
    constexpr long kMostKib = 4096, kMostMappings = 24;
#endif
    const long most[] = {4, 12, kMostMappings, kMostKib, 64 << 10};
    ASSERT_EQ(used[1].size(), 5u);
    for (size_t kind = 0; kind < 5; ++kind) {
      EXPECT_LE(used[1][kind], used[0][kind] + most[kind]) << transport << ", rank " << rank << ": " << kinds[kind];
    }
    std::printf("%s, rank %d, %d groups: %ld -> %ld bytes in use, %ld -> %ld KiB resident\n", transport.c_str(), rank,
                times, used[0][4], used[1][4], used[0][3], used[1][3]);
  }
}

constexpr int kParts = 60;

Job parts_across_hosts(const std::string& limit) {
  return Job("limited_program", 4, {"parts", std::to_string(kParts)}, ranks_on("mixed", {{"CCOM_TEST_LIMIT", limit}}));
}

// A part's data connections alone: two, to the ranks of the other host.
TEST(Parts, AcrossHostsNeedNoDescriptorsButForTheirData) {
  Job job = parts_across_hosts("soft_nofile:1024");
  ASSERT_TRUE(job.finish(milliseconds(60000))) << job.transcript();
  for (int rank = 0; rank < 4; ++rank) {
    long added = 0, limit = 0;
    std::istringstream(job.line(rank, "parts").substr(6)) >> added >> limit;
    EXPECT_GE(added, 2 * kParts - 8) << job.transcript();  // rank 0 gives some up that the start took
    EXPECT_LE(added, 2 * kParts + 8) << job.transcript();
    EXPECT_EQ(limit, 1024);
  }
}

TEST(Parts, RaiseTheSoftLimitOfDescriptors) {
  Job job = parts_across_hosts("soft_nofile:128");
  ASSERT_TRUE(job.finish(milliseconds(60000))) << job.transcript();
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(job.line(rank, "done"), "done") << job.transcript();
    EXPECT_TRUE(job.line(rank, "parts").ends_with(" 256")) << job.transcript();
  }
}

TEST(Parts, NameTheHardLimitOfDescriptors) {
  Job job = parts_across_hosts("nofile:128");
  ASSERT_TRUE(job.finish(milliseconds(60000))) << job.transcript();
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_NE(job.line(rank, "failed").find("this process may have 128 in all"), std::string::npos) << job.transcript();
}

}  // namespace
}  // namespace ccom
