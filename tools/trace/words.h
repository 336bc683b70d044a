// SPDX-License-Identifier: Apache-2.0
//
// Words that several outputs of ccom-trace share.
#pragma once

#include <cstdint>
#include <string>

#include "trace/recorded_job.h"

namespace ccom::tracetool {

// "1.23 s", "45.6 us", "300 ns"
std::string duration_text(int64_t ns);
// "2026-11-27 00:12:01.123456 UTC"
std::string date_text(int64_t realtime_ns);
// Of a communicator: its name, or "communicator 1a2b".
std::string communicator_name(const std::string& name, uint64_t number);
std::string group_name(const RecordedGroup& group);
// "train.py:88 (step)"; with file and line where the program is here and has debug information. "": unknown.
std::string place_text(const std::string& site);
// A time of the job as that of the calendar.
int64_t realtime(const RecordedJob& job, int64_t common_ns);

}  // namespace ccom::tracetool
