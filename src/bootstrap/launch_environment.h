// SPDX-License-Identifier: Apache-2.0
//
// Variables of launchers as values: what launch.cc, launch_hosts.cc and launch_meeting.cc have in common.
#pragma once

#include <cstdint>
#include <string>

#include "bootstrap/launch.h"

namespace ccom {

// nullptr if the variable is unset or empty, or if `name` is nullptr.
const char* get_variable(const EnvironmentLookup& environment, const char* name);

// A ConfigError that names the variable unless all of `text` is an integer within [low, high].
Result<uint64_t> parse_variable(const char* name, const char* text, uint64_t low, uint64_t high);

// -1 if the variable is not there.
Result<int> optional_number(const EnvironmentLookup& environment, const char* name, uint64_t low);

Status contradiction(const char* name, int value, const char* limit_name, int limit);

// ["algo-1","algo-2"]: SM_HOSTS. A ConfigError unless it is a list of names, at least one.
Result<std::vector<std::string>> parse_host_names(const char* name, const char* json);

// The first name in a compressed list of Slurm's, "node[03-08,11],login1": "node03". A ConfigError if it is malformed.
Result<std::string> first_node(const char* name, std::string_view list);

}  // namespace ccom
