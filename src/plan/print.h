// SPDX-License-Identifier: Apache-2.0
//
// Plans as text: for people, golden files and error texts.
#pragma once

#include <string>

#include "plan/plan.h"

namespace ccom {

std::string to_text(const Step& step);
// A heading and one numbered line per step.
std::string to_text(const Plan& plan);

}  // namespace ccom
