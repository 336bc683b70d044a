// SPDX-License-Identifier: Apache-2.0
//
// Starts of processes that may have few descriptors or threads: an error that says so, at once.
#include "bootstrap/start_resources.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>

#include "base/network.h"
#include "bootstrap/url.h"
#include "test_rendezvous.h"
#include "tests/harness/child.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::HasSubstr;

constexpr auto kAtOnce = std::chrono::seconds(5);

// Whether `body` holds, at once, in a process of a user who has no other, under that limit.
template <typename Body>
bool holds_under(decltype(RLIMIT_NOFILE) kind, rlim_t most, const Body& body) {
  return holds_in_child([&] {
    if (::geteuid() == 0 && ::setresuid(64321, 64321, 64321) != 0) return false;
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (::setrlimit(kind, &limit) != 0) return false;
    const auto start = std::chrono::steady_clock::now();
    return body() && std::chrono::steady_clock::now() - start < kAtOnce;
  });
}

TEST(StartResources, WithoutThreadsAreAnErrorAtOnce) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer ends a forked child that starts threads";
#endif
  for (const rlim_t most : {1, 3, 6}) {
    EXPECT_TRUE(holds_under(RLIMIT_NPROC, most, [] {
      const Status status = check_start_resources();
      return status.sys_errno() == EAGAIN && status.message().find("threads") != std::string::npos;
    })) << most;
  }
  EXPECT_TRUE(check_start_resources().is_ok());
}

// gRPC's threads found no room for their stacks after its first ones had reserved 64 MiB each, and its shutdown waited
// for them for ever.
TEST(StartResources, WithoutAddressSpaceAreAnErrorAtOnce) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space of its own, and ends a process that has none";
#endif
  for (const rlim_t mib : {100, 150, 200, 260}) {
    EXPECT_TRUE(holds_under(RLIMIT_AS, mib << 20, [mib] {
      const Status status = check_start_resources();
      // With 260 it depends on the order in which threads allocate whether what is left is enough.
      return (mib == 260 && status.is_ok()) || status.cure().find("ulimit -v") != std::string::npos;
    })) << mib;
  }
}

TEST(StartResources, WithoutDescriptorsAreAnErrorThatSaysSo) {
  const TemporaryFolder folder;
  for (const rlim_t most : {3, 8, 12}) {
    EXPECT_TRUE(holds_under(RLIMIT_NOFILE, most, [&folder] {
      const MakeId none = [] { return error(Code::InternalError, "not reached"); };
      const auto id = unique_id_from_url("file://" + folder / "id", 2, 1, soon(), none);
      return !id && id.error().code() == Code::OutOfMemory && id.error().sys_errno() == EMFILE;
    })) << most;
  }
  EXPECT_TRUE(holds_under(RLIMIT_NOFILE, 3, [] { return choose_interfaces("lo").error().sys_errno() == EMFILE; }))
      << "not that there is no such interface";
}

}  // namespace
}  // namespace ccom
