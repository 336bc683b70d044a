// SPDX-License-Identifier: Apache-2.0
//
// Reports as JSON: exchanged between ranks, and printed by --json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/verdict.h"

namespace ccom::doctor {

// What ranks send each other: the types of report.h, vectors of reaches, strings and times. No value: the text is of
// another version.
template <typename T>
std::string to_message(const T& value);
template <typename T>
std::optional<T> from_message(const std::string& text);

std::string json_report(const Report& report, const std::vector<Finding>& findings);

}  // namespace ccom::doctor
