// SPDX-License-Identifier: Apache-2.0
//
// What a process measures of its own memory: figures that a processor can have, once.
#include "node/own_memory.h"

#include <gtest/gtest.h>

namespace ccom {
namespace {

constexpr size_t kSecondCache = size_t{1} << 20;

TEST(OwnMemory, IsMeasuredInFiguresThatAProcessorCanHave) {
  const OwnCosts costs = measure_own_costs(kSecondCache);
  for (const double byte_ns : {costs.far_load_ns, costs.far_store_ns, costs.streamed_store_ns}) {
    EXPECT_GT(byte_ns, 1e-4);  // 10 TB/s
    EXPECT_LT(byte_ns, 1e4);   // 100 KB/s, under a sanitizer beside other work
  }
  // Both or neither: the kernel may forbid such reads.
  EXPECT_EQ(costs.read_call_ns > 0, costs.read_byte_ns > 0);
}

TEST(OwnMemory, IsMeasuredOnceInAProcess) {
  bool is_new = false, is_new_again = false;
  const OwnCosts first = own_costs(kSecondCache, is_new);
  EXPECT_EQ(own_costs(kSecondCache, is_new_again), first) << "two measurements are never equal";
  EXPECT_TRUE(is_new);
  EXPECT_FALSE(is_new_again);
}

TEST(OwnMemory, OfAnyCacheSizeIsMeasured) {
  for (const size_t size_bytes : {size_t{0}, size_t{100'001}, size_t{1} << 40})
    EXPECT_GT(measure_own_costs(size_bytes).far_store_ns, 0) << size_bytes;
}

}  // namespace
}  // namespace ccom
