// SPDX-License-Identifier: Apache-2.0
#include "observe/locator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/time.h"
#include "observe/activity_pulse.h"
#include "observe/rank_activity.h"
#include "tests/harness/waiting.h"

namespace ccom {
namespace {

std::optional<Located> wait_for_answer(int64_t since_ns) {
  std::optional<Located> found;
  wait_until([&] { return (found = locate_since(since_ns)).has_value(); });
  return found;
}

void count_calls(char* text, size_t size, void* user) {
  std::snprintf(text, size, "call %d", ++*static_cast<std::atomic<int>*>(user));
}

TEST(Locator, IsAskedOnlyWhenSomebodyWantsToKnow) {
  EXPECT_FALSE(locate_since(0));
  std::atomic<int> calls{0};
  set_locator(&count_calls, &calls);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for a call that must not come
  EXPECT_EQ(calls.load(), 0);
  const int64_t now = monotonic_ns();
  EXPECT_FALSE(locate_since(now)) << "it does not block";
  const auto first = wait_for_answer(now);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text, "call 1");
  EXPECT_EQ(wait_for_answer(now)->text, "call 1") << "young enough";
  EXPECT_EQ(wait_for_answer(monotonic_ns())->text, "call 2");
  set_locator(nullptr, nullptr);
  EXPECT_FALSE(locate_since(0));
  EXPECT_EQ(calls.load(), 2);
}

TEST(Locator, ItsEndIsWaitedFor) {
  std::atomic<bool> is_over{false};
  set_locator(
      [](char*, size_t, void* user) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // set_locator() is called meanwhile
        static_cast<std::atomic<bool>*>(user)->store(true);
      },
      &is_over);
  locate_since(monotonic_ns());
  set_locator(nullptr, nullptr);
  EXPECT_TRUE(is_over.load());
}

TEST(Locator, AnswersThroughTheRecord) {
  const auto record = std::make_unique<ActivityRecord>();
  ActivityPulse pulse(*record);
  set_locator([](char* text, size_t size, void*) { std::snprintf(text, size, "train.py:214 (evaluate)"); }, nullptr);
  pulse.beat(monotonic_ns());
  const uint32_t question = ask_place(*record);
  EXPECT_FALSE(is_place_told(*record, question));
  while (pulse.answer(monotonic_ns())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(is_place_told(*record, question));
  EXPECT_EQ(read_activity(*record, monotonic_ns() + 1'000'000'000, true).place, "train.py:214 (evaluate)");
  set_locator(nullptr, nullptr);
}

}  // namespace
}  // namespace ccom
