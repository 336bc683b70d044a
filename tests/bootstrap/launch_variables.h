// SPDX-License-Identifier: Apache-2.0
//
// A launcher's environment as a table, for the tests of what is read from it.
#pragma once

#include <map>
#include <string>

#include "bootstrap/launch_environment.h"

namespace ccom::testing {

using Variables = std::map<std::string, std::string>;

// Borrows the variables.
inline EnvironmentLookup lookup(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// Of the rendezvous, or the error.
inline std::string url_of(const Variables& variables) {
  const auto found = read_launch_rendezvous(lookup(variables), 1000);
  return found ? found->url : "error: " + found.error().message();
}

}  // namespace ccom::testing
