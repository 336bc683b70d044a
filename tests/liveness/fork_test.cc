// SPDX-License-Identifier: Apache-2.0
//
// After fork() the child's copies of Monitors say so, change nothing of the parent's, and do not hang; new ones work.
#include <gtest/gtest.h>

#include <thread>

#include "tests/harness/child.h"
#include "tests/liveness/cluster.h"

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;  // does not let a forked child start threads
#else
constexpr bool kThreadSanitizer = false;
#endif

namespace ccom {
namespace {

TEST(Fork, TheChildIsToldAndTheParentIsUntouched) {
  auto cluster = std::make_unique<test::ConnectedCluster>(std::vector{2, 1}, 300);
  EXPECT_TRUE(holds_in_child([&cluster] {
    test::Cluster& copy = *cluster;
    const bool told = copy[0].check().code() == Code::InvalidUsage && copy[1].status().code() == Code::InvalidUsage &&
                      copy[2].report(Status(Code::Aborted, "x")).code() == Code::InvalidUsage &&
                      copy[0].connect({}, Deadline::after_ms(1)).code() == Code::InvalidUsage;
    cluster.reset();
    return told;
  }));
  for (int i = 0; i < 60; ++i) {
    for (Rank r = 0; r < 3; ++r) ASSERT_TRUE((*cluster)[r].check().is_ok()) << (*cluster)[r].status().message();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // in all twice dead_ms
  }
  (void)(*cluster)[2].report(Status(Code::Aborted, "still working"));
  EXPECT_TRUE(cluster->all_fail(2000));
}

TEST(Fork, TheChildCanHaveMonitorsOfItsOwn) {
  if (kThreadSanitizer) GTEST_SKIP();
  test::Cluster parents({2});
  EXPECT_TRUE(holds_in_child([] {
    test::Cluster own({2, 1});
    if (!own.connect().is_ok()) return false;
    (void)own[1].report(Status(Code::Aborted, "x"));
    return own.all_fail(2000);
  }));
  EXPECT_TRUE(parents[0].check().is_ok());
}

}  // namespace
}  // namespace ccom
