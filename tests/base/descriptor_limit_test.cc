// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the limit of open files, in children that have one of their own.
#include "base/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>

#include "base/descriptor.h"
#include "tests/harness/child.h"

namespace ccom {
namespace {

rlim_t soft_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Whether `check` holds in a child with these limits.
bool holds_with(rlim_t soft, rlim_t hard, const std::function<bool()>& check) {
  return holds_in_child([&] {
    const rlimit limit{soft, hard};
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && check();
  });
}

TEST(DescriptorLimit, StaysWhileThereIsRoom) {
  EXPECT_TRUE(holds_with(200, 400, [] { return make_room_for_descriptors(20).is_ok() && soft_limit() == 200; }));
}

TEST(DescriptorLimit, IsRaisedAsFarAsTheHardOneAllows) {
  EXPECT_TRUE(holds_with(200, 1000, [] { return make_room_for_descriptors(190).is_ok() && soft_limit() == 400; }));
  EXPECT_TRUE(holds_with(200, 300, [] { return make_room_for_descriptors(190).is_ok() && soft_limit() == 300; }));
  EXPECT_TRUE(holds_with(200, 1000, [] {
    const Status made = make_room_for_descriptors(600);
    return made.is_ok() && soft_limit() > 600;
  }));
}

// Though it had room for the first ones; and though numbers below those in use are free, as when a start begins.
TEST(DescriptorLimit, CountsThoseThatAreOpenAlsoBeyondFreeNumbers) {
  for (const int freed : {0, 10}) {
    EXPECT_TRUE(holds_with(100, 1000, [freed] {
      std::vector<Descriptor> open;
      for (int i = 0; i < 60; ++i) open.push_back(Descriptor::from([] { return ::dup(1); }));
      open.erase(open.begin(), open.begin() + freed);
      return make_room_for_descriptors(1).is_ok() && soft_limit() == 200;
    })) << freed;
  }
}

TEST(DescriptorLimit, IsNamedByTheErrorWhereItIsTooLow) {
  EXPECT_TRUE(holds_with(100, 200, [] {
    const Status made = make_room_for_descriptors(300);
    return made.key() == ErrorKey::TooFewDescriptors && made.message().find("200 in all") != std::string::npos &&
           made.cure().find("ulimit -n") != std::string::npos;
  }));
}

}  // namespace
}  // namespace ccom
