// SPDX-License-Identifier: Apache-2.0
//
// Which programs are known to give sums the same bits wherever their operands lie: those that combine at once, on one
// host and on several, whoever crosses; not rings, trees or halvings. That it is so is shown by bits
// (tests/api/fusion_test.cc).
#include "algorithms/same_sums.h"

#include <gtest/gtest.h>

#include "planner/planner.h"
#include "tests/harness/results.h"
#include "tests/planner/machines.h"

namespace ccom {
namespace {

Program program_of(const std::vector<int>& hosts, const char* algorithm, size_t bytes) {
  const Settings settings{.forced = algorithm, .shared_memory = true};
  return value_of(choose(ranks_on(hosts), settings, {Collective::AllReduce, bytes, false, -1})).program();
}

TEST(SameSums, AreThoseOfProgramsThatCombineAtOnce) {
  const auto alike = [](const std::vector<int>& hosts, const char* a, const char* b) {
    return sums_alike(program_of(hosts, a, 64), program_of(hosts, b, 32768));
  };
  EXPECT_TRUE(alike({4}, "", "")) << "through memory, by one barrier and by tiles";
  EXPECT_TRUE(alike({4}, "one_shot", "two_shot"));
  EXPECT_TRUE(alike({3, 3}, "hierarchical_leaders", "hierarchical_sharded"));
  EXPECT_FALSE(alike({4}, "", "one_shot")) << "nothing is known of memory and messages together";
  EXPECT_FALSE(alike({3, 3}, "", "two_shot")) << "hosts first, or all ranks at once";
  for (const char* algorithm : {"ring", "circulant", "recursive_doubling", "tree"})
    EXPECT_FALSE(alike({5}, algorithm, algorithm)) << algorithm;
}

}  // namespace
}  // namespace ccom
