// SPDX-License-Identifier: Apache-2.0
//
// Room-private: which candidates break a promise that a question asks to be kept.
#pragma once

#include <string>

#include "planner/planner.h"

namespace ccom {

// Why the candidate is illegal by the question's order of contributions, number of roundings, or what crosses hosts
// (question.wire as crosses_as() says); empty if it is not.
std::string refusal(const Question& question, const Candidate& candidate);

}  // namespace ccom
