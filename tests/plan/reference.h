// SPDX-License-Identifier: Apache-2.0
//
// What plans mean, worked out slowly and exactly: the yardstick for the verifier.
//
// Shares with it the language and the rule of ranges, and nothing else: no derived dependencies, no executor, no
// fingerprints, no random order. Steps that touch a common cell are ordered pair by pair, progress is the absence of a
// cycle between starts and ends, and as nothing races then, one order gives the values of all: expressions as interned
// trees with their multisets of contributions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace ccom {

// Empty if the plans do what their collective promises, else what is wrong.
std::string reference_verdict(std::span<const Plan> plans);

// A plan's steps in the least of all orders that keep touching steps and each channel's transfers in order, without
// what means nothing. Plans with equal normal forms are the same program.
std::vector<Step> normal_form(const Plan& plan);

}  // namespace ccom
