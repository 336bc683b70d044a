// SPDX-License-Identifier: Apache-2.0
//
// CCOM_ALGO: an algorithm by name.
#pragma once

#include <string>
#include <string_view>

#include "planner/planner.h"

namespace ccom {

// Two-dimensional tori need four channels between ranks, which are opened only if somebody asks.
inline bool asks_for_torus(std::string_view forced) { return forced.find("torus") != std::string_view::npos; }

// Those that keep rank order are candidates where an operator needs it, or somebody asks.
inline bool asks_for_order(std::string_view forced) {
  return forced.find("in_order") != std::string_view::npos || forced.find("gather_tree") != std::string_view::npos;
}

// So is the one over hosts that needs more bytes between them than others.
inline bool asks_for_direct(std::string_view forced) {
  return forced.find("hierarchical_direct") != std::string_view::npos;
}

// ConfigError with what there is, unless every part of `forced` names a collective, if any, and an algorithm.
Status check_forced(std::string_view forced);

// Why calls on this topology cannot use a part of `forced`: none of them if it names no collective. Empty where all are
// of use. No error: a job's other communicators may be able to.
std::string useless_part(const Topology& topology, const Settings& settings, std::string_view forced);

// Makes the legal candidate of this name the chosen one, if there is one.
void prefer(Choice& choice, std::string_view name);

// Makes the candidate that `forced` names the chosen one; see choose().
Status apply_forced(Choice& choice, const Question& question, std::string_view forced);

}  // namespace ccom
