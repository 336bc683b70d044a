// SPDX-License-Identifier: Apache-2.0
//
// Every CCOM_* environment variable, in one documented table (options.cc). All code reads variables through this
// interface, so ccomParamList and the documentation are complete by construction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace ccom {

struct OptionInfo {
  const char* key;
  const char* default_value;  // "" = unset
  const char* help;
};

std::span<const OptionInfo> option_table();

// The effective value: from the environment, or the default. The key must be in the table (asserted). Reads the
// environment on every call; do not call it on a fast path.
std::string option(std::string_view key);
bool option_is_set(std::string_view key);
// ConfigError naming the variable unless the whole value is an integer within [low, high].
Result<int64_t> integer_option(std::string_view key, int64_t low, int64_t high);

}  // namespace ccom
