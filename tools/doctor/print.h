// SPDX-License-Identifier: Apache-2.0
//
// Prints a report and its findings, as text or as JSON.
#pragma once

#include <string>

#include "tools/doctor/verdict.h"

namespace ccom::doctor {

std::string to_text(const Report& report, const std::vector<Finding>& findings);
// One JSON object on one line: verdict, hosts with verdicts, findings, report.

}  // namespace ccom::doctor
