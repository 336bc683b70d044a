// SPDX-License-Identifier: Apache-2.0
//
// The error of ranks that made different calls, whoever finds it.
#pragma once

#include <string>

#include "base/status.h"
#include "base/types.h"
#include "liveness/straggler_poll.h"

namespace ccom {

class Monitor;

// A call as a rank made it: as text_of() says it, and its word of numbered().
struct MadeCall {
  Rank rank = -1;
  std::string text;
  uint64_t number = 0;
};
// Of calls that were compared and found different. Where they are equal and calls before them were not, the error names
// those, if they are among the last ones that the monitor knows; that takes 150 ms with several hosts. note: as below,
// for calls with equal histories.
Status find_mismatch(Monitor& monitor, const MadeCall& a, const MadeCall& b, const char* note);

// Results that must be equal on all ranks are not, as the words of the same call say: those of `before`.
Status results_error(const BegunCall& a, const BegunCall& b, const std::string& before);

// The calls as text_of() says them; note: what follows them, or "".
Status mismatch_error(Rank a, const std::string& call_of_a, Rank b, const std::string& call_of_b,
                      const char* note = "");

}  // namespace ccom
