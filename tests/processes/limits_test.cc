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
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/processes/job.h"
#include "tests/processes/rotation.h"
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
  Job job(3, {"calls"}, [&](int rank) {
    Job::Environment environment = environment_for(transport, rank);
    if (rank == 1) environment["CCOM_TEST_LIMIT"] = limit;
    environment["CCOM_INIT_TIMEOUT_MS"] = "3000";
    environment["CCOM_TIMEOUT_MS"] = "5000";
    return environment;
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

// Every value in the long form or those of CCOM_TEST_PART, a few of them otherwise.
std::vector<long> values(long first, long last, long step, long few) {
  std::vector<long> all;
  const long stride = is_long() ? step : (last - first) / few;
  for (long value = first + (is_long() ? 0 : test_day() % stride); value <= last; value += stride) {
    if (is_in_part(static_cast<size_t>((value - first) / stride))) all.push_back(value);
  }
  return all;
}

TEST(Limits, OfDescriptorsAreAnError) {
  for (const std::string transport : {"shm", "tcp", "ofi"}) {
    if (!is_long() && transport == "ofi") continue;
    for (const long limit : values(8, 96, 1, 3)) {
      print(transport, std::to_string(limit) + " descriptors", check(transport, "nofile:" + std::to_string(limit)));
    }
  }
}

TEST(Limits, OfAddressSpaceAreAnError) {
  for (const long mib : values(40, 700, 20, 2)) {
    for (const std::string transport : {"shm", "tcp"}) {
      print(transport, "address space of " + std::to_string(mib) + " MiB",
            check(transport, "as:" + std::to_string(mib << 20)));
    }
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

void check_group(const std::string& controller, const std::string& v1_file, const std::string& v2_file, long value,
                 const std::string& text) {
  for (const std::string transport : {"shm", "tcp"}) {
    const ControlGroup group(controller, v1_file, v2_file, value);
    if (group.folder().empty()) GTEST_SKIP() << "no control group can be made here";
    print(transport, text, check(transport, controller + ":" + group.folder()));
  }
}

TEST(Limits, OfAControlGroupsThreadsAreAnError) {
  for (const long threads : values(1, 40, 1, 2)) {
    check_group("pids", "pids.max", "pids.max", threads, std::to_string(threads) + " threads");
  }
}

// Less than a program with these libraries takes itself is the kernel's affair: it kills.
TEST(Limits, OfAControlGroupsMemoryAreAnError) {
  for (const long mib : values(48, 304, 16, 2)) {
    check_group("memory", "memory.limit_in_bytes", "memory.max", mib << 20, std::to_string(mib) + " MiB");
  }
}

// Each takes what the group has left, at the same time as the others: together they take no more than it has, where the
// kernel would kill one of them.
TEST(Limits, OfOneGroupsMemoryOfAllRanksAreAnError) {
  constexpr long kLimitMib = 384;
  const std::vector<std::string> sizes = {"16", "64", "200"};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!is_long() && i != static_cast<size_t>(test_day()) % sizes.size()) continue;
    const std::string& mib = sizes[i];
    const ControlGroup group("memory", "memory.limit_in_bytes", "memory.max", kLimitMib << 20);
    if (group.folder().empty()) GTEST_SKIP() << "no control group can be made here";
    Job job(4, {"memory", is_long() ? "50" : "2", mib}, [&](int) {
      return Job::Environment{{"CCOM_TEST_LIMIT", "memory:" + group.folder()}};
    });
    ASSERT_TRUE(job.finish(milliseconds(is_long() ? 600000 : 60000))) << job.transcript();
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_FALSE(job.line(rank, "done").empty()) << mib << " MiB at a time: rank " << rank << " died\n"
                                                   << job.transcript();
      const std::string took = job.line(rank, "took");
      EXPECT_NE(took.find("bytes of shared memory"), std::string::npos) << took;
      std::printf("%s\n", took.c_str());
    }
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
TEST(Groups, MadeAndDestroyedLeaveNothing) {
  const int times = is_long() ? 10000 : 60;
  const std::vector<std::string> transports = {"shm", "tcp", "ofi", "mixed"};
  for (size_t i = 0; i < transports.size(); ++i) {
    if (!is_long() && i != static_cast<size_t>(test_day()) % transports.size()) continue;
    if (!is_in_part(i)) continue;
    const std::string& transport = transports[i];
    Job job(4, {"groups", std::to_string(times)}, [&](int rank) {
      Job::Environment environment = environment_for(transport, rank);
      environment["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0";
      return environment;
    });
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
}

constexpr int kParts = 60;

Job parts_across_hosts(const std::string& limit) {
  return Job(4, {"parts", std::to_string(kParts)}, [&](int rank) {
    Job::Environment environment = environment_for("mixed", rank);
    environment["CCOM_TEST_LIMIT"] = limit;
    return environment;
  });
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
