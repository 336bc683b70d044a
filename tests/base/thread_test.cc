// SPDX-License-Identifier: Apache-2.0
//
// A thread of the library takes no signal, and starting one, also in vain, leaves the caller's signals as they were.
#include "base/thread.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <thread>

namespace {

thread_local bool has_no_memory = false;

bool fails() { return has_no_memory; }

}  // namespace

#include "tests/operator_new.h"

namespace ccom {
namespace {

bool is_blocked(int signal) {
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return ::sigismember(&now, signal) == 1;
}

// SIGUSR1 is blocked and SIGTERM is not, as the application wants it.
class StartThread : public testing::Test {
 protected:
  StartThread() {
    sigset_t wanted;
    ::sigemptyset(&wanted);
    ::sigaddset(&wanted, SIGUSR1);
    ::pthread_sigmask(SIG_SETMASK, &wanted, &before_);
  }
  ~StartThread() override {
    EXPECT_TRUE(is_blocked(SIGUSR1));
    EXPECT_FALSE(is_blocked(SIGTERM));
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_;
};

TEST_F(StartThread, BlocksAllSignalsInTheThreadAlone) {
  std::thread thread;
  bool all_blocked = false;
  ASSERT_EQ(start_thread(thread, "test", [&] { all_blocked = is_blocked(SIGUSR1) && is_blocked(SIGTERM); }), 0);
  thread.join();
  EXPECT_TRUE(all_blocked);
}

// As Python's faulthandler: the kernel ends a process at once that blocks the signal of its own fault.
TEST(StartThreadDeathTest, LetsAFaultReachTheApplicationsHandler) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto fault = [] {
    ::signal(SIGSEGV, [](int) { std::_Exit(42); });
    auto* const page = static_cast<volatile int*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::thread thread;
    if (start_thread(thread, "test", [page] { *page = 1; }) == 0) thread.join();
  };
  EXPECT_EXIT(fault(), ::testing::ExitedWithCode(42), "");
}

TEST_F(StartThread, WithoutMemoryLeavesTheCallersSignalsAsTheyWere) {
  std::thread thread;
  has_no_memory = true;
  const int refused = start_thread(thread, "test", [] {});
  has_no_memory = false;
  EXPECT_EQ(refused, ENOMEM);
}

struct Uncopyable {
  Uncopyable() = default;
  Uncopyable(Uncopyable&& /*other*/) noexcept(false) { throw std::bad_alloc(); }
  Uncopyable(const Uncopyable&) = default;
  void operator()() const {}
};

TEST_F(StartThread, OfAFunctionThatCannotBeCopiedLeavesTheCallersSignalsAsTheyWere) {
  std::thread thread;
  const Uncopyable run;
  EXPECT_EQ(start_thread(thread, "test", run), ENOMEM);
}

// There is no address space for its stack.
TEST_F(StartThread, ThatTheSystemRefusesLeavesTheCallersSignalsAsTheyWere) {
  pthread_attr_t before, large;
  ASSERT_EQ(::pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&large), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&large, size_t{1} << 47), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&large), 0);
  std::thread thread;
  const int refused = start_thread(thread, "test", [] {});
  ASSERT_EQ(::pthread_setattr_default_np(&before), 0);
  EXPECT_EQ(refused, EAGAIN);
}

}  // namespace
}  // namespace ccom
