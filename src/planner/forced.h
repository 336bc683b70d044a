// SPDX-License-Identifier: Apache-2.0
//
// CCOM_ALGO: an algorithm by name.
#pragma once

#include <string_view>

#include "planner/planner.h"

namespace ccom {

// Two-dimensional tori need four channels between ranks, which are opened only if somebody asks.
inline bool asks_for_torus(std::string_view forced) { return forced.find("torus") != std::string_view::npos; }

// Makes the candidate that `forced` names the chosen one; see choose().
Status apply_forced(Choice& choice, const Question& question, std::string_view forced);

}  // namespace ccom
