// SPDX-License-Identifier: Apache-2.0
//
// A choice as text. The JSON is written by hand: five flat fields per candidate, no strings that need escaping.
#include <cstdarg>
#include <cstdio>

#include "planner/planner.h"

namespace ccom {
namespace {

[[gnu::format(printf, 2, 3)]] void append(std::string& text, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

}  // namespace

std::string explain_json(const Question& question, const Choice& choice) {
  std::string text = "{\"collective\":\"" + std::string(name_of(question.collective)) + "\"";
  append(text, ",\"bytes\":%zu,\"algorithm\":\"%s\",\"reason\":\"%s\",\"candidates\":[", question.bytes,
         choice.recipe().algorithm.c_str(), choice.reason.c_str());
  for (const Candidate& candidate : choice.candidates) {
    append(text,
           "%s{\"algorithm\":\"%s\",\"legal\":%s,\"steps\":%.0f,\"bytes_sent\":%.0f,\"time_us\":%.3f,\"roundings\":%d,"
           "\"note\":\"%s\"}",
           &candidate == &choice.candidates.front() ? "" : ",", candidate.recipe.algorithm.c_str(),
           candidate.legal ? "true" : "false", candidate.steps, candidate.bytes, candidate.time_ns / 1e3,
           candidate.roundings, candidate.note.c_str());
  }
  return text + "]}";
}

std::string explain_text(const Question& question, const Choice& choice) {
  std::string text;
  append(text, "%s of %zu bytes: %s (%s)\n", std::string(name_of(question.collective)).c_str(), question.bytes,
         choice.recipe().algorithm.c_str(), choice.reason.c_str());
  append(text, "    %-22s %6s %14s %12s %9s  %s\n", "algorithm", "steps", "bytes sent", "time us", "roundings", "note");
  for (const Candidate& candidate : choice.candidates) {
    const char mark = &candidate == &choice.candidates[choice.chosen] ? '*' : ' ';
    if (candidate.legal) {
      append(text, "  %c %-22s %6.0f %14.0f %12.1f %9d  %s\n", mark, candidate.recipe.algorithm.c_str(),
             candidate.steps, candidate.bytes, candidate.time_ns / 1e3, candidate.roundings, candidate.note.c_str());
    } else {
      append(text, "  %c %-22s %6s %14s %12s %9s  %s\n", mark, candidate.recipe.algorithm.c_str(), "-", "-", "-", "-",
             candidate.note.c_str());
    }
  }
  return text;
}

}  // namespace ccom
