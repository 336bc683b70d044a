// SPDX-License-Identifier: Apache-2.0
//
// Misspelt variables: one that nobody reads, CCOM_TRASNPORT, is as if it were not set, which is not what was meant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ccom {

// Variables that are not options of a communicator (option_table()): the PyTorch backend, tests, scripts and CMake read
// them.
std::span<const char* const> other_variables();

// A sentence for each of the names that begins with CCOM_ and is unknown, with the known one that is like it, if any.
// Kubernetes names variables after services (CCOM_PORT, CCOM_MASTER_SERVICE_HOST): they are left out.
std::vector<std::string> unknown_variables(const std::vector<std::string>& names);

// Logs these sentences for the process's environment, once in the life of the process; whatever CCOM_LOG is.
void warn_of_unknown_variables();

}  // namespace ccom
