// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/words.h"

#include <cmath>
#include <ctime>

#include "base/text.h"
#include "observe/source_line.h"

namespace ccom::tracetool {

std::string duration_text(int64_t ns) {
  const auto value = static_cast<double>(ns);
  const double size = std::abs(value);
  if (size >= 1e9) return printed("%.3g s", value / 1e9);
  if (size >= 1e6) return printed("%.3g ms", value / 1e6);
  if (size >= 1e3) return printed("%.3g us", value / 1e3);
  return printed("%.0f ns", value);
}

std::string date_text(int64_t realtime_ns) {
  const time_t seconds = realtime_ns / 1'000'000'000;
  tm calendar{};
  ::gmtime_r(&seconds, &calendar);
  char date[64];
  if (std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &calendar) == 0) return "at an unknown time";
  return printed("%s.%06lld UTC", date, static_cast<long long>(realtime_ns % 1'000'000'000 / 1000));
}

std::string communicator_name(const std::string& name, uint64_t number) {
  if (!name.empty()) return name;
  return printed("communicator %llx", static_cast<unsigned long long>(number));
}

std::string group_name(const RecordedGroup& group) { return communicator_name(group.name, group.number); }

std::string place_text(const std::string& site) { return site.empty() ? "" : with_source_line(site); }

int64_t realtime(const RecordedJob& job, int64_t common_ns) { return common_ns + job.files[0].realtime_offset_ns; }

}  // namespace ccom::tracetool
