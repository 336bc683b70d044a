// SPDX-License-Identifier: Apache-2.0
//
// What a call on a node does not do once it has been made before: allocate memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "tests/api/ranks.h"

namespace {

// Of this thread: the liveness thread allocates a little four times a second.
thread_local uint64_t allocations = 0;

}  // namespace

// Replaces the library's as well: it takes operator new from whoever defines it first.
void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace ccom {
namespace {

TEST(FastPath, AllocatesNothing) {
  with_ranks(2, [](int, ccomComm_t comm) {
    float small[2] = {1, 2};
    std::vector<float> large(100000, 1);
    const auto call = [&](float* data, size_t count) {
      ASSERT_EQ(ccomAllReduce(data, data, count, ccomFloat32, ccomSum, comm, nullptr), ccomSuccess);
    };
    for (int i = 0; i < 10; ++i) {
      call(small, 2);
      call(large.data(), large.size());
    }
    ASSERT_EQ(ccomBarrier(comm, nullptr), ccomSuccess);
    const uint64_t before = allocations;
    for (int i = 0; i < 1000; ++i) call(small, 2);
    for (int i = 0; i < 10; ++i) call(large.data(), large.size());
    const uint64_t after = allocations;
    ASSERT_EQ(ccomBarrier(comm, nullptr), ccomSuccess);
    EXPECT_EQ(after - before, 0U);
  });
}

TEST(FastPath, TheCountSeesTheLibrary) {
  const uint64_t before = allocations;
  ccomStream_t stream = nullptr;
  ASSERT_EQ(ccomStreamCreate(&stream), ccomSuccess);
  EXPECT_GT(allocations, before);
  EXPECT_EQ(ccomStreamDestroy(stream), ccomSuccess);
}

}  // namespace
}  // namespace ccom
