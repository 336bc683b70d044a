// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/words.h"

#include <cmath>
#include <cstdio>
#include <ctime>

#include "observe/source_line.h"

namespace ccom::tracetool {

std::string duration_text(int64_t ns) {
  const auto value = static_cast<double>(ns);
  const double size = std::abs(value);
  char text[48];
  if (size >= 1e9)
    std::snprintf(text, sizeof text, "%.3g s", value / 1e9);
  else if (size >= 1e6)
    std::snprintf(text, sizeof text, "%.3g ms", value / 1e6);
  else if (size >= 1e3)
    std::snprintf(text, sizeof text, "%.3g us", value / 1e3);
  else
    std::snprintf(text, sizeof text, "%.0f ns", value);
  return text;
}

std::string date_text(int64_t realtime_ns) {
  const time_t seconds = realtime_ns / 1'000'000'000;
  tm calendar{};
  ::gmtime_r(&seconds, &calendar);
  char date[64], text[96];
  if (std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &calendar) == 0) return "at an unknown time";
  std::snprintf(text, sizeof text, "%s.%06lld UTC", date, static_cast<long long>(realtime_ns % 1'000'000'000 / 1000));
  return text;
}

std::string communicator_name(const std::string& name, uint64_t number) {
  if (!name.empty()) return name;
  char text[32];
  std::snprintf(text, sizeof text, "communicator %llx", static_cast<unsigned long long>(number));
  return text;
}

std::string group_name(const RecordedGroup& group) { return communicator_name(group.name, group.number); }

std::string place_text(const std::string& site) { return site.empty() ? "" : with_source_line(site); }

int64_t realtime(const RecordedJob& job, int64_t common_ns) { return common_ns + job.files[0].realtime_offset_ns; }

}  // namespace ccom::tracetool
