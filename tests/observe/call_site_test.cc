// SPDX-License-Identifier: Apache-2.0
#include "observe/call_site.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

namespace ccom {
namespace {

[[gnu::noinline]] CallSite site_here() { return call_site(__builtin_return_address(0)); }

// Compilers copy calls out of loops, and jump to functions whose result they return.
[[gnu::noinline, gnu::noclone]] CallSite from_one_place() {
  const CallSite site = site_here();
  asm volatile("" ::: "memory");
  return site;
}

TEST(CallSite, AnAddressHasOneNumberAndTwoHaveTwo) {
  const CallSite first = from_one_place();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(from_one_place(), first);
  EXPECT_NE(first, 0);
  EXPECT_NE(site_here(), first);
  EXPECT_NE(text_of(first).find("test_observe+0x"), std::string_view::npos) << text_of(first);
}

TEST(CallSite, WhatTheThreadSetsStandsUntilItSetsAnother) {
  set_call_site("train.py:1 (step)");
  const CallSite set = site_here();
  EXPECT_EQ(text_of(set), "train.py:1 (step)");
  set_call_site("train.py:2 (step)");
  EXPECT_EQ(text_of(site_here()), "train.py:2 (step)");
  set_call_site("train.py:1 (step)");
  EXPECT_EQ(site_here(), set);
  std::thread([] { EXPECT_NE(text_of(site_here()).find("+0x"), std::string_view::npos); }).join();
  set_call_site("");
  EXPECT_NE(text_of(site_here()).find("+0x"), std::string_view::npos);
}

TEST(CallSite, TextsAreCopiedAndCut) {
  std::string text(400, 'y');
  set_call_site(text);
  const CallSite site = site_here();
  text.assign(400, 'z');
  EXPECT_EQ(text_of(site), std::string(120, 'y'));
  set_call_site("");
}

// In a process of its own: it takes all numbers.
TEST(CallSiteDeathTest, MoreThanThereAreNumbersForAreUnknown) {
  const auto take_all = [] {
    for (uint32_t i = 0; i < kMostCallSites; ++i) set_call_site("place " + std::to_string(i));
    const bool is_unknown = site_here() == 0;
    set_call_site("place 5");
    std::exit(is_unknown && text_of(site_here()) == "place 5" ? 0 : 1);
  };
  EXPECT_EXIT(take_all(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace ccom
