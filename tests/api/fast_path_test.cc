// SPDX-License-Identifier: Apache-2.0
//
// What a call on a node does not do once it has been made before: allocate memory, or enter the kernel.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "tests/api/system_calls.h"
#include "tests/harness/environment.h"
#include "tests/harness/resources.h"
#include "tests/harness/world.h"

namespace {

// Of this thread: the liveness thread allocates a little four times a second.
thread_local uint64_t allocations = 0;

bool fails() {
  ++allocations;
  return false;
}

}  // namespace

#include "tests/operator_new.h"

namespace ccom {
namespace {

// From one place, whose text a process's first call allocates.
[[gnu::noinline, gnu::noclone]] void add(ccomComm_t comm, float* data, size_t count) {
  const ccomResult_t result = ccomAllReduce(data, data, count, ccomFloat32, ccomSum, comm, nullptr);
  ASSERT_OK(result);
}

// Without the calls that try a way for the first time.
TEST(FastPath, AllocatesNothing) {
  const ScopedVariable no_file("CCOM_TUNING", "off");
  with_ranks(2, [](int, ccomComm_t comm) {
    float small[2] = {1, 2};
    std::vector<float> large(100000, 1);
    const auto call = [&](float* data, size_t count) { add(comm, data, count); };
    for (int i = 0; i < 10; ++i) {
      call(small, 2);
      call(large.data(), large.size());
    }
    ASSERT_OK(ccomBarrier(comm, nullptr));
    const uint64_t before = allocations;
    for (int i = 0; i < 1000; ++i) call(small, 2);
    for (int i = 0; i < 10; ++i) call(large.data(), large.size());
    const uint64_t after = allocations;
    ASSERT_OK(ccomBarrier(comm, nullptr));
    EXPECT_EQ(after - before, 0U);
  });
}

// No two sizes take each other's place.
TEST(FastPath, AllocatesNothingForManySizesInTurn) {
  const ScopedVariable no_file("CCOM_TUNING", "off");
  constexpr size_t kSizes = 300;
  with_ranks(2, [](int, ccomComm_t comm) {
    std::vector<float> data(size_t{7} * kSizes + 3000, 1);
    uint64_t allocated = 0;
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK(ccomBarrier(comm, nullptr));
      const uint64_t before = allocations;
      for (size_t i = 0; i < kSizes; ++i) add(comm, data.data(), 7 * i + 1);
      for (size_t i = 0; i < kSizes; ++i) add(comm, data.data(), 3000 + 7 * i);
      allocated = allocations - before;
    }
    EXPECT_EQ(allocated, 0U);
  });
}

// More sizes than are kept, of calls and of programs: what is used least makes room, and may come back.
TEST(FastPath, KeepsABoundedNumberOfSizes) {
  const ScopedVariable no_file("CCOM_TUNING", "off");
  constexpr size_t kSizes = 70'000, kFirst = 3000;
  std::array<size_t, 2> grown{};
  with_ranks(2, [&grown](int rank, ccomComm_t comm) {
    std::vector<float> data(kFirst + kSizes);
    const auto call = [&](size_t count) {
      data[0] = data[count - 1] = 1;
      add(comm, data.data(), count);
      ASSERT_EQ(data[0] + data[count - 1], 4);
    };
    const size_t before = allocated_bytes();
    for (size_t i = 0; i < kSizes; ++i) {
      call(kFirst + i);
      call(kFirst + i % 8);
      call(1 + i);
    }
    for (size_t i = 0; i < 100; ++i) call(kFirst + i);
    grown[static_cast<size_t>(rank)] = allocated_bytes() - before;
  });
  std::printf("%zu and %zu MiB more\n", grown[0] >> 20, grown[1] >> 20);
  EXPECT_LT(std::max(grown[0], grown[1]), size_t{96} << 20) << "of both ranks";
}

TEST(FastPath, LooksAtTheBuffersOfACallThatIsKnown) {
  with_ranks(2, [](int rank, ccomComm_t comm) {
    for (const size_t count : {size_t{2}, size_t{100000}}) {
      std::vector<float> data(2 * count, 1), all(2 * count);
      for (int i = 0; i < 3; ++i) add(comm, data.data(), count);
      ASSERT_OK(ccomAllGather(data.data(), all.data(), count, ccomFloat32, comm, nullptr));
      const auto sum = [&](const float* from, float* to) {
        return ccomAllReduce(from, to, count, ccomFloat32, ccomSum, comm, nullptr);
      };
      EXPECT_EQ(sum(nullptr, data.data()), ccomInvalidArgument);
      EXPECT_EQ(sum(data.data(), nullptr), ccomInvalidArgument);
      EXPECT_EQ(sum(data.data(), data.data() + 1), ccomInvalidArgument);
      const auto gather = [&](const float* from) {
        return ccomAllGather(from, all.data(), count, ccomFloat32, comm, nullptr);
      };
      EXPECT_EQ(gather(all.data() + (1 - rank) * static_cast<ptrdiff_t>(count)), ccomInvalidArgument);
      const auto type = static_cast<ccomDataType_t>(ccomFloat32 + 256);  // the same in one byte
      EXPECT_EQ(ccomAllReduce(data.data(), data.data(), count, type, ccomSum, comm, nullptr), ccomInvalidArgument);
      std::fill_n(all.begin() + rank * static_cast<ptrdiff_t>(count), count, 3.0F + static_cast<float>(rank));
      ASSERT_OK(gather(all.data() + rank * static_cast<ptrdiff_t>(count)));
      EXPECT_EQ(all.front(), 3);
      EXPECT_EQ(all.back(), 4);
    }
    ASSERT_OK(ccomBroadcast(nullptr, nullptr, 0, ccomFloat32, 1, comm, nullptr));
    EXPECT_EQ(ccomBroadcast(nullptr, nullptr, 0, ccomFloat32, 2, comm, nullptr), ccomInvalidArgument);
  });
}

// Calls of one kind try ways (call_choices.h): each is compiled when it is first tried.
TEST(FastPath, AllocatesOncePerWayThatIsTried) {
  static constexpr size_t kMostWays = 24;  // that the planner gives a call
  with_ranks(2, [](int, ccomComm_t comm) {
    std::vector<float> input(16384, 1), output(input.size());
    size_t calls = 0;
    for (int i = 0; i < 5000; ++i) {
      const uint64_t before = allocations;
      const ccomResult_t result =
          ccomAllReduce(input.data(), output.data(), input.size(), ccomFloat32, ccomSum, comm, nullptr);
      if (allocations != before) ++calls;
      ASSERT_OK(result);
    }
    EXPECT_GT(calls, 1U) << "no other way was tried";
    EXPECT_LE(calls, kMostWays);
  });
}

TEST(FastPath, MakesNoSystemCallsButToWait) {
  SystemCalls of_ranks[2];
  std::atomic<bool> may{true};
  with_ranks(2, [&](int rank, ccomComm_t comm) {
    SystemCalls& mine = of_ranks[rank];
    float small[2] = {1, 2};
    std::vector<float> input(16384, 1), output(input.size());
    const auto call_some = [&](int times) {
      for (int i = 0; i < times; ++i) {
        EXPECT_OK(ccomAllReduce(small, small, 2, ccomFloat32, ccomMax, comm, nullptr));
        EXPECT_OK(ccomAllReduce(input.data(), output.data(), input.size(), ccomFloat32, ccomSum, comm, nullptr));
      }
    };
    call_some(5000);  // all ways have been tried; on a loaded machine some come later
    if (!mine.begin()) may = false;
    call_some(1);
    int quiet = 0;  // windows in which no way was tried for the first time, for which memory is allocated
    for (int window = 0; window < 4; ++window) {
      const size_t before = mine.made();
      const uint64_t allocated = allocations;
      call_some(500);
      if (allocations != allocated) continue;
      ++quiet;
      EXPECT_EQ(mine.made(), before) << "the last was system call " << mine.last();
    }
    EXPECT_GT(quiet, 0);
    const size_t before = mine.made();
    for (int i = 0; i < 3; ++i) ::syscall(SYS_getppid);
    if (may) {
      EXPECT_EQ(mine.made(), before + 3) << "the count is blind";
    }
  });
  if (!may) GTEST_SKIP() << "the kernel lets nobody count system calls here";
}

TEST(FastPath, TheCountSeesTheLibrary) {
  const uint64_t before = allocations;
  const ccomStream_t stream = new_stream();
  EXPECT_GT(allocations, before);
  EXPECT_OK(ccomStreamDestroy(stream));
}

}  // namespace
}  // namespace ccom
