// SPDX-License-Identifier: Apache-2.0
#include "liveness/call_mismatch.h"

#include <algorithm>

#include "base/call.h"
#include "liveness/monitor.h"

namespace ccom {

Status find_mismatch(Monitor& monitor, const MadeCall& a, const MadeCall& b, const char* note) {
  if (a.text != b.text || has_history_of(a.number, b.number)) {
    return mismatch_error(a.rank, a.text, b.rank, b.text, note);
  }
  monitor.find_stragglers();  // compares the last calls of all ranks, too
  if (monitor.failed()) return monitor.status();
  return mismatch_error(a.rank, a.text, b.rank, b.text, " (equal calls after different ones)");
}

Status mismatch_error(Rank a, const std::string& call_of_a, Rank b, const std::string& call_of_b, const char* note) {
  return error(Code::Mismatch, "ranks made different calls: rank %d: %s; rank %d: %s%s", a, call_of_a.c_str(), b,
               call_of_b.c_str(), note)
      .with_peers({std::min(a, b), std::max(a, b)})
      .with_cure("make the same calls in the same order with equal count, type, operator and root on all ranks");
}

}  // namespace ccom
