// SPDX-License-Identifier: Apache-2.0
#include "liveness/call_mismatch.h"

#include <algorithm>

namespace ccom {

Status mismatch_error(Rank a, const std::string& call_of_a, Rank b, const std::string& call_of_b, const char* note) {
  return error(Code::Mismatch, "ranks made different calls: rank %d: %s; rank %d: %s%s", a, call_of_a.c_str(), b,
               call_of_b.c_str(), note)
      .with_peers({std::min(a, b), std::max(a, b)})
      .with_cure("make the same calls in the same order with equal count, type, operator and root on all ranks");
}

}  // namespace ccom
