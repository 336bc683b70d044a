// SPDX-License-Identifier: Apache-2.0
//
// Plan files (CCOM_PLAN, docs/plans.md): programs as JSON, for whole collectives and ranges of sizes. Reading checks
// that a file is well-formed, so that plans can be made from it; whether a program does what its collective promises is
// proved by verify_program().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/program.h"
#include "planner/planner.h"

namespace ccom {

// The first entry that serves a call; nullptr: none.
const PlanEntry* find_entry(const std::vector<PlanEntry>& entries, const Question& question, int nranks);

std::string to_json(const std::vector<PlanEntry>& entries);

// ConfigError that names the first thing that is wrong: "plans[2].program.stages[0].messages.tree.parent[3]: ...".
Result<std::vector<PlanEntry>> plans_from_json(std::string_view text);
// The same from a file, which the error names too.
Result<std::vector<PlanEntry>> read_plan_file(const std::string& path);

// Whether the stages inside hosts fit a topology's hosts; NotSupported, with the stage and a rank, if they do not.
Status check_hosts(const Program& program, const Topology& topology);

}  // namespace ccom
