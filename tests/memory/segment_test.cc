// SPDX-License-Identifier: Apache-2.0
//
// The shared segment itself: sealed, taken in parts, and a full memory is an error instead of a signal. Available
// memory is read from a made-up /proc and /sys.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <vector>

#include "base/page.h"
#include "memory/available_memory.h"
#include "memory/shared_segment.h"
#include "tests/harness/folder.h"

namespace ccom {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

int64_t taken_bytes(const SharedSegment& segment) {
  struct stat info {};
  EXPECT_EQ(::fstat(segment.fd(), &info), 0);
  return info.st_blocks * 512;
}

// Address space of this process.
size_t mapped_bytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * page_bytes();
}

TEST(SharedSegment, IsZeroedAndTakesOnlyWhatIsReserved) {
  auto segment = SharedSegment::create(64 * kMiB, kMiB);
  ASSERT_TRUE(segment) << segment.error().message();
  EXPECT_EQ((*segment)->bytes().size(), 64 * kMiB);
  EXPECT_EQ(taken_bytes(**segment), static_cast<int64_t>(kMiB));
  EXPECT_TRUE(std::ranges::all_of((*segment)->bytes().first(kMiB), [](std::byte b) { return b == std::byte{0}; }));
  ASSERT_TRUE((*segment)->reserve(32 * kMiB, kMiB).is_ok());
  ASSERT_TRUE((*segment)->reserve(32 * kMiB, kMiB).is_ok());
  EXPECT_EQ(taken_bytes(**segment), static_cast<int64_t>(2 * kMiB));
}

// By another process, which is this one here.
TEST(SharedSegment, IsOpenedAgainForMemoryAndKeepsNoDescriptorBefore) {
  auto whole = SharedSegment::create(kMiB, 0);
  ASSERT_TRUE(whole);
  const auto shown = ShownFile::of((*whole)->fd());
  if (!shown) GTEST_SKIP() << "this process does not show its files";
  const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
  const int next = ::dup((*whole)->fd());
  ::close(next);
  auto mapped = SharedSegment::attach(*shown, kMiB);
  ASSERT_TRUE(mapped) << mapped.error().message();
  EXPECT_FALSE(is_open(next));
  const Status reserved = (*mapped)->reserve(0, 64 << 10);
  EXPECT_TRUE(reserved.is_ok()) << reserved.message();
  EXPECT_EQ(taken_bytes(**whole), 64 << 10);
  EXPECT_EQ((*mapped)->fd(), next);
  (*mapped)->bytes()[5] = std::byte{7};
  EXPECT_EQ((*whole)->bytes()[5], std::byte{7});
}

TEST(SharedSegment, IsNotTakenForWhatItsOwnerHasOpenInItsPlace) {
  auto whole = SharedSegment::create(kMiB, 0);
  ASSERT_TRUE(whole);
  const auto shown = ShownFile::of((*whole)->fd());
  if (!shown) GTEST_SKIP() << "this process does not show its files";
  auto mapped = SharedSegment::attach(*shown, kMiB);
  ASSERT_TRUE(mapped);
  whole->reset();
  EXPECT_EQ((*mapped)->reserve(0, 4096).code(), Code::SystemError);
  auto other = SharedSegment::create(kMiB, 0);
  ASSERT_TRUE(other);
  ASSERT_EQ((*other)->fd(), shown->descriptor);
  EXPECT_EQ((*mapped)->reserve(0, 4096).code(), Code::NotSupported);
  EXPECT_FALSE(SharedSegment::attach(*shown, kMiB));
}

TEST(SharedSegment, CannotBeShrunkGrownOrUnsealedByAPeer) {
  auto segment = SharedSegment::create(kMiB, 0);
  ASSERT_TRUE(segment);
  EXPECT_NE(::ftruncate((*segment)->fd(), 4096), 0);
  EXPECT_NE(::ftruncate((*segment)->fd(), 2 * kMiB), 0);
  EXPECT_NE(::fcntl((*segment)->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_NE(::fcntl((*segment)->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedSegment, TwoMappingsShowTheSameBytes) {
  auto first = SharedSegment::create(kMiB, kMiB);
  ASSERT_TRUE(first);
  auto second = SharedSegment::attach(::dup((*first)->fd()), kMiB);
  ASSERT_TRUE(second) << second.error().message();
  (*first)->bytes()[kMiB - 1] = std::byte{42};
  EXPECT_EQ((*second)->bytes()[kMiB - 1], std::byte{42});
}

// All began at the same place of a cache that is looked up by the lower half of addresses.
TEST(SharedSegment, SegmentsOfAProcessBeginAtDifferentHugePages) {
  constexpr size_t kSegments = 32;
  std::vector<std::unique_ptr<SharedSegment>> segments;
  std::set<uintptr_t> places;
  for (size_t i = 0; i < kSegments; ++i) {
    auto segment = SharedSegment::create(256 * kMiB, 0);
    ASSERT_TRUE(segment) << segment.error().message();
    const auto begin = reinterpret_cast<uintptr_t>((*segment)->bytes().data());
    EXPECT_EQ(begin % kHugePageBytes, 0u);
    places.insert(begin / kHugePageBytes % kSegments);
    segments.push_back(std::move(*segment));
  }
  EXPECT_EQ(places.size(), kSegments);
}

// The sanitizers' own address space is not what a process may use.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(SharedSegment, LiesAnywhereWhereAddressSpaceIsShort) {
  const size_t before = mapped_bytes();
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &limit), 0);
  rlimit limited = limit;
  limited.rlim_cur = before + 16 * kMiB;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const auto fits = SharedSegment::create(8 * kMiB, kMiB), does_not = SharedSegment::create(32 * kMiB, 0);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  ASSERT_TRUE(fits) << fits.error().message();
  (*fits)->bytes()[0] = std::byte{1};
  EXPECT_FALSE(does_not);
  EXPECT_LT(mapped_bytes(), before + 12 * kMiB) << "of what was only asked for nothing is kept";
}
#endif

TEST(SharedSegment, AttachRefusesAnotherSizeAndWhatIsNotSealed) {
  auto segment = SharedSegment::create(kMiB, 0);
  ASSERT_TRUE(segment);
  for (const size_t size_bytes : {size_t{0}, kMiB - 1, kMiB + 1, 2 * kMiB}) {
    const auto attached = SharedSegment::attach(::dup((*segment)->fd()), size_bytes);
    ASSERT_FALSE(attached.has_value());
    EXPECT_EQ(attached.error().code(), Code::InvalidArgument);
  }
  const int unsealed = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(unsealed, kMiB), 0);
  const auto attached = SharedSegment::attach(unsealed, kMiB);
  ASSERT_FALSE(attached.has_value());
  EXPECT_NE(attached.error().message().find("seal"), std::string::npos);
  EXPECT_EQ(::fcntl(unsealed, F_GETFD), -1) << "attach owns the descriptor also when it fails";
  EXPECT_FALSE(SharedSegment::attach(-1, kMiB).has_value());
}

TEST(SharedSegment, AskingForMoreMemoryThanThereIsIsAnError) {
  const auto segment = SharedSegment::create(size_t{1} << 45, size_t{1} << 45);
  ASSERT_FALSE(segment.has_value());
  EXPECT_EQ(segment.error().code(), Code::OutOfMemory) << segment.error().message();
  const auto absurd = SharedSegment::create(size_t{1} << 62, 0);
  ASSERT_FALSE(absurd.has_value());
}

TEST(SharedSegment, AFileSizeLimitIsAnErrorAndNotASignal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto existing = SharedSegment::create(8 * kMiB, 0);
  rlimit limited = before;
  limited.rlim_cur = kMiB;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  const auto segment = SharedSegment::create(2 * kMiB, 0);
  const Status reserved = (*existing)->reserve(4 * kMiB, kMiB);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(segment.has_value());
  EXPECT_EQ(segment.error().code(), Code::OutOfMemory);
  EXPECT_EQ(reserved.code(), Code::OutOfMemory);
}

TEST(SharedSegment, ReserveOutsideIsAnInvalidArgument) {
  auto segment = SharedSegment::create(kMiB, 0);
  ASSERT_TRUE(segment);
  EXPECT_EQ((*segment)->reserve(kMiB, 1).code(), Code::InvalidArgument);
  EXPECT_EQ((*segment)->reserve(SIZE_MAX, 2).code(), Code::InvalidArgument);
  EXPECT_EQ((*segment)->reserve(1, SIZE_MAX).code(), Code::InvalidArgument);
  EXPECT_TRUE((*segment)->reserve(kMiB, 0).is_ok());
  EXPECT_EQ(SharedSegment::create(kMiB, kMiB + 1).error().code(), Code::InvalidArgument);
  EXPECT_EQ(SharedSegment::create(0, 0).error().code(), Code::InvalidArgument);
}

class AvailableMemory : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const TemporaryFolder folder_;
  const std::string& root_ = folder_.path();
};

TEST_F(AvailableMemory, IsWhatTheMachineHasWithoutGroups) {
  write("/proc/meminfo", "MemTotal:  1000 kB\nMemFree: 20 kB\nMemAvailable:     500 kB\n");
  EXPECT_EQ(available_memory_bytes(root_), 500u * 1024);
}

TEST_F(AvailableMemory, IsBoundedByTheTightestGroupOnTheWayUp) {
  write("/proc/meminfo", "MemAvailable: 1000000 kB\n");
  write("/proc/self/cgroup", "0::/pod/container\n");
  write("/sys/fs/cgroup/pod/container/memory.max", "max\n");
  write("/sys/fs/cgroup/pod/container/memory.current", "7000\n");
  write("/sys/fs/cgroup/pod/memory.max", "100000\n");
  write("/sys/fs/cgroup/pod/memory.current", "70000\n");
  write("/sys/fs/cgroup/pod/memory.stat", "anon 1\ninactive_file 20000\n");
  EXPECT_EQ(available_memory_bytes(root_), 50000u);
}

TEST_F(AvailableMemory, ReadsGroupsOfTheFirstVersionToo) {
  write("/proc/meminfo", "MemAvailable: 1000000 kB\n");
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n0::/\n");
  write("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "100000\n");
  write("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "150000\n");
  EXPECT_EQ(available_memory_bytes(root_), 0u);
}

TEST_F(AvailableMemory, IsUnlimitedWhenNothingCanBeRead) { EXPECT_EQ(available_memory_bytes(root_), UINT64_MAX); }

}  // namespace
}  // namespace ccom
