// SPDX-License-Identifier: Apache-2.0
//
// Launcher variables as values; shared by launch.cc, launch_hosts.cc and launch_rendezvous.cc.
#pragma once

#include <cstdint>
#include <string>

#include "bootstrap/launch.h"

namespace ccom {

// nullptr if the variable is unset or empty, or if `name` is nullptr.
const char* get_variable(const EnvironmentLookup& environment, const char* name);

// ConfigError naming the variable unless all of `text` is an integer within [low, high].
Result<uint64_t> parse_variable(const char* name, const char* text, uint64_t low, uint64_t high);

// -1 if the variable is not set.
Result<int> optional_number(const EnvironmentLookup& environment, const char* name, uint64_t low);

Status contradiction(const char* name, int value, const char* limit_name, int limit);

// ["algo-1","algo-2"]: SM_HOSTS. ConfigError unless it is a non-empty list of names.
Result<std::vector<std::string>> parse_host_names(const char* name, const char* json);

// Whether this is a task that srun has started. Batch scripts and salloc's shells have SLURM_PROCID=0, too, but no
// step, or one with a reserved id.
bool is_slurm_step(const EnvironmentLookup& environment);

// "4(x2),3": nodes 0 and 1 have 4 tasks, node 2 has 3. ConfigError if it is malformed or says nothing of the node.
Result<int> tasks_of_node(const char* name, std::string_view list, int node);

// The first name of a compressed Slurm list, "node[03-08,11],login1": "node03". ConfigError if it is malformed.
Result<std::string> first_node(const char* name, std::string_view list);

}  // namespace ccom
