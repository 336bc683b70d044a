// SPDX-License-Identifier: Apache-2.0
//
// What forked children have of memory that ranks can map: values as they were, writes of their own, and no way into
// the parent.
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/harness/child.h"
#include "tests/harness/world.h"

extern char** environ;

namespace ccom {
namespace {

constexpr size_t kCount = 1 << 20;  // of ints: several pages and a huge one

int* allocate(size_t count) {
  void* memory = nullptr;
  EXPECT_OK(ccomMemAlloc(&memory, count * sizeof(int)));
  return static_cast<int*>(memory);
}

bool is_all(const int* data, int value) {
  return std::all_of(data, data + kCount, [value](int x) { return x == value; });
}

TEST(ForkedMemory, TheChildReadsWhatWasThere) {
  int* const data = allocate(kCount);
  std::fill_n(data, kCount, 7);
  int* const untouched = allocate(kCount);
  EXPECT_TRUE(holds_in_child([&] { return is_all(data, 7) && is_all(untouched, 0); }));
  EXPECT_OK(ccomMemFree(data));
  EXPECT_OK(ccomMemFree(untouched));
}

TEST(ForkedMemory, WritesStayWhereTheyAre) {
  int* const data = allocate(kCount);
  std::fill_n(data, kCount, 7);
  Child child([&](const PacketSocket& test) {
    std::fill_n(data, kCount, 8);
    test.send("ready");
    test.receive();
    return is_all(data, 8) ? 0 : 1;
  });
  ASSERT_EQ(child.receive(), "ready");
  EXPECT_TRUE(is_all(data, 7)) << "the child has written to its own copy";
  std::fill_n(data, kCount, 9);
  child.send("go");
  EXPECT_EQ(child.wait(), 0) << "the parent's writes do not reach what the child has written";
  EXPECT_OK(ccomMemFree(data));
}

TEST(ForkedMemory, GrandchildrenHaveTheirParentsCopy) {
  int* const data = allocate(kCount);
  std::fill_n(data, kCount, 1);
  EXPECT_TRUE(holds_in_child([&] {
    std::fill_n(data, kCount, 2);
    const bool right = holds_in_child([&] {
      if (!is_all(data, 2)) return false;
      std::fill_n(data, kCount, 3);
      return holds_in_child([&] { return is_all(data, 3); });
    });
    return right && is_all(data, 2);
  }));
  EXPECT_TRUE(is_all(data, 1));
  EXPECT_OK(ccomMemFree(data));
}

TEST(ForkedMemory, TheChildAllocatesAndFreesForItself) {
  int* const data = allocate(kCount);
  std::fill_n(data, kCount, 5);
  EXPECT_TRUE(holds_in_child([&] {
    int* const own = allocate(kCount);
    std::fill_n(own, kCount, 6);
    const bool grandchild = holds_in_child([&] {
      const bool right = is_all(own, 6);
      std::fill_n(own, kCount, 0);
      return right && ccomMemFree(own) == ccomSuccess;
    });
    return grandchild && is_all(own, 6) && ccomMemFree(own) == ccomSuccess && ccomMemFree(data) == ccomSuccess &&
           ccomMemFree(own) == ccomInvalidArgument;
  }));
  EXPECT_TRUE(is_all(data, 5)) << "it is the parent's";
  EXPECT_OK(ccomMemFree(data));
}

TEST(ForkedMemory, RegisteredMemoryIsCopiedToo) {
  with_ranks(1, [](int, ccomComm_t comm) {
    constexpr size_t kBytes = kCount * sizeof(int);
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    int* const data = static_cast<int*>(memory);
    std::fill_n(data, kCount, 3);
    void* handle = nullptr;
    ASSERT_OK(ccomCommRegister(comm, data, kBytes, &handle));
    EXPECT_TRUE(holds_in_child([&] {
      const bool right = is_all(data, 3);
      std::fill_n(data, kCount, 4);
      return right && is_all(data, 4) && ccomAllReduce(data, data, 1, ccomInt32, ccomSum, comm, nullptr) != ccomSuccess;
    }));
    EXPECT_TRUE(is_all(data, 3));
    ASSERT_OK(ccomCommDeregister(comm, handle));
    EXPECT_TRUE(holds_in_child([&] { return is_all(data, 3); }));
    ::munmap(memory, kBytes);
  });
}

// Other threads allocate, free and register all the time; a child must find no lock taken, and its copy whole.
TEST(ForkedMemory, OtherThreadsMayAllocateMeanwhile) {
  int* const data = allocate(kCount);
  std::fill_n(data, kCount, 7);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&stop] {
      while (!stop) {
        int* const some = allocate(5000);
        some[4999] = 1;
        EXPECT_OK(ccomMemFree(some));
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(holds_in_child([&] {
      int* const own = allocate(1000);
      own[999] = 1;
      return is_all(data, 7) && ccomMemFree(own) == ccomSuccess;
    }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_OK(ccomMemFree(data));
}

TEST(ForkedMemory, OtherProgramsAreNotConcerned) {
  int* const data = allocate(kCount);
  std::fill_n(data, kCount, 7);
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  pid_t child = -1;
  ASSERT_EQ(::posix_spawn(&child, program, nullptr, nullptr, arguments, environ), 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(holds_in_child([&] {
    ::execv(program, arguments);
    return false;
  }));
  EXPECT_TRUE(is_all(data, 7));
  EXPECT_OK(ccomMemFree(data));
}

// The shape of a loader's worker: it reads what lies in the parent's memory while ranks compute.
TEST(ForkedMemory, ACollectiveGoesOnWhileAChildReads) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    int* const data = allocate(kCount);
    int* const sums = allocate(kCount);
    std::fill_n(data, kCount, rank + 1);
    for (int i = 0; i < 5; ++i) {
      if (rank == 0) {
        EXPECT_TRUE(holds_in_child([&] { return is_all(data, 1); }));
      }
      ASSERT_OK(ccomAllReduce(data, sums, kCount, ccomInt32, ccomSum, comm, nullptr));
      EXPECT_TRUE(is_all(sums, 3));
    }
    EXPECT_OK(ccomMemFree(data));
    EXPECT_OK(ccomMemFree(sums));
  });
}

}  // namespace
}  // namespace ccom
