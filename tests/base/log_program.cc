// SPDX-License-Identifier: Apache-2.0
//
// Logs what CCOM_LOG_FORMAT=json must survive, to stderr; log_json_test.py reads it. Beside it, in the same pipe,
// others do the same.
//   log_program hostile           one line of each kind
//   log_program many COUNT        long lines, from four threads
//   log_program asserts           a failed assertion
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/log.h"

namespace {

using namespace ccom;

void log_hostile_lines() {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::vector<std::string> texts = {"plain",
                                          "",
                                          "\"quotes\" and \\ backslashes \\",
                                          "two\nlines\r\n\tand a tab",
                                          "\x1b[31mred\x1b[0m",
                                          all,
                                          "umlauts \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80",
                                          "cut \xe2\x82",
                                          "overlong \xc0\xaf, surrogate \xed\xa0\x80",
                                          "\xff\xfe",
                                          "{\"level\":\"error\"}",
                                          "</script>\xe2\x80\xa8",
                                          std::string(2047, '\x01'),
                                          std::string(2048, 'x'),
                                          std::string(5000, '"'),
                                          std::string(5000, '\xff'),
                                          "%s%n%d"};
  for (const std::string& text : texts) log(LogLevel::Warn, "%s", text.c_str());
  const LogContext context(7, 0xabcdef);
  log(LogLevel::Error, "with a context");
}

void log_many_lines(int count) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, count] {
      for (int i = 0; i < count; ++i)
        log(LogLevel::Warn, "%d %d %s", t, i, std::string(static_cast<size_t>(i * 97 % 2500), 'x').c_str());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "hostile") log_hostile_lines();
  if (what == "many" && argc > 2) log_many_lines(std::atoi(argv[2]));
  if (what == "asserts") CCOM_ASSERT(std::string("a \"quoted\" expression").empty());
  return 0;
}
