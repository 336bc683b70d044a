// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the rules of program_verify.h that need no values.
#pragma once

#include <string>

#include "base/status.h"
#include "plan/program.h"

namespace ccom {

// An InternalError that names the program and the rule.
Status defect(const Program& program, const std::string& what);
std::string stage_text(uint32_t stage);

// Groups, lists and slots exist; slices are of a vector.
Status check_structure(const Program& program);
// Whether everything is posted when the plan starts: nothing is sent in answer to anything.
bool posts_at_once(const Plan& plan);
// Whether a node plan's first phase shows the same to others as the opening's, and waits for the same.
bool begins_alike(const NodePlan& plan, const NodePlan& opening);

}  // namespace ccom
