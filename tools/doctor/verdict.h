// SPDX-License-Identifier: Apache-2.0
//
// Derives findings from a report. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/doctor/report.h"

namespace ccom::doctor {

// Trouble: jobs fail, or run much slower than the machines allow. Note: worth knowing, but works.
enum class Level { Fine, Note, Trouble };
const char* name_of(Level level);

struct Finding {
  Level level = Level::Note;
  std::vector<int> hosts{};  // hosts concerned; empty: the whole job
  std::string text{};        // a sentence that names the hosts
  std::string cure{};        // "" if unknown
};

// Trouble first.
std::vector<Finding> judge(const Report& report);

// The worst of the findings; of those that concern `host` unless it is -1.
Level worst(const std::vector<Finding>& findings, int host = -1);

// The parts of judge(): single hosts and their differences, connections, speeds.
void judge_hosts(const Report& report, std::vector<Finding>& findings);
void judge_network(const Report& report, std::vector<Finding>& findings);
void judge_speeds(const Report& report, std::vector<Finding>& findings);

// The pairs that judge_speeds() finds slow, lower host first: to be measured again before they are reported.
std::vector<std::pair<int, int>> slow_pairs(const Report& report);

// "host-a", "host-a and host-b", "host-a, host-b and 3 more".
std::string name_hosts(const Report& report, const std::vector<int>& hosts);
// "118 MB/s", "1.2 GB/s"; "45 us".
std::string rate_text(double bytes_per_second);
std::string time_text(double ns);

}  // namespace ccom::doctor
