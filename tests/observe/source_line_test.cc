// SPDX-License-Identifier: Apache-2.0
//
// This file has debug information.
#include "observe/source_line.h"

#include <gtest/gtest.h>

#include "observe/call_site.h"

namespace ccom {
namespace {

[[gnu::noinline]] CallSite called_from() { return call_site(__builtin_return_address(0)); }

[[gnu::noinline]] int line_of(std::string& text) {
  const CallSite site = called_from();
  text = text_of(site);
  return __LINE__ - 2;
}

TEST(SourceLine, NamesFileLineAndFunctionOfAReturnAddress) {
  std::string site;
  const int line = line_of(site);
  EXPECT_EQ(with_source_line(site), "source_line_test.cc:" + std::to_string(line) + " (line_of)") << site;
  EXPECT_EQ(with_source_line(site), with_source_line(site, false)) << "known by now";
}

TEST(SourceLine, OfAnotherHostIsReadFromAProgramThatRunsHereOnly) {
  std::string site;
  const int line = line_of(site);
  const std::string far = site.substr(0, site.find("+0x")) + "+0x1 other";
  SourceLines lines(true);
  EXPECT_EQ(lines.of_another_host("/proc/self/exe+0x1 other"), "exe+0x1 (other)");
  EXPECT_EQ(lines.of_this_host(site), "source_line_test.cc:" + std::to_string(line) + " (line_of)");
  EXPECT_EQ(lines.of_another_host(site), "source_line_test.cc:" + std::to_string(line) + " (line_of)");
  EXPECT_EQ(lines.of_another_host(far), with_source_line(far));
}

TEST(SourceLine, LeavesOtherTextsAsTheyAre) {
  for (const char* text : {"", "train.py:220 (step)", "+0x", "a+0xzz b", "backward", "a:b+0x12"})
    EXPECT_EQ(with_source_line(text), text);
}

TEST(SourceLine, ShortensWhatHasNoDebugInformation) {
  EXPECT_EQ(with_source_line("/no/such/program+0x1234 step"), "program+0x1234 (step)");
  EXPECT_EQ(with_source_line("/etc/passwd+0x1234"), "passwd+0x1234");
  EXPECT_EQ(with_source_line("/dev/zero+0x1234 step"), "zero+0x1234 (step)");
  EXPECT_EQ(with_source_line("/+0x1"), "+0x1");
  EXPECT_EQ(with_source_line("/another/program+0x1234 step", false), "program+0x1234 (step)");
}

}  // namespace
}  // namespace ccom
