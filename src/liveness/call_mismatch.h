// SPDX-License-Identifier: Apache-2.0
//
// The error of ranks that made different calls, whoever finds it.
#pragma once

#include <string>

#include "base/status.h"
#include "base/types.h"

namespace ccom {

// The calls as text_of() says them; note: what follows them, or "".
Status mismatch_error(Rank a, const std::string& call_of_a, Rank b, const std::string& call_of_b,
                      const char* note = "");

}  // namespace ccom
