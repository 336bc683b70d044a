// SPDX-License-Identifier: Apache-2.0
//
// CCOM_ALGO: an algorithm by name.
#pragma once

#include <string_view>

#include "planner/planner.h"

namespace ccom {

// Makes the candidate that `forced` names the chosen one; see choose().
Status apply_forced(Choice& choice, const Question& question, std::string_view forced);

}  // namespace ccom
