// SPDX-License-Identifier: Apache-2.0
//
// Every CCOM_* environment variable, in one documented table (options.cc). Whoever needs one asks here and nowhere
// else, so that ccomParamList and the documentation are complete by construction.
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

// The value in force: the environment's, or the default. The key must be in the table (asserted). Read afresh at each
// call; keep the result, do not call on a fast path.
std::string option(std::string_view key);
bool option_is_set(std::string_view key);
// A ConfigError that names the variable unless the whole value is an integer within [low, high].
Result<int64_t> integer_option(std::string_view key, int64_t low, int64_t high);

}  // namespace ccom
