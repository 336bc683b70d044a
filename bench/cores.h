// SPDX-License-Identifier: Apache-2.0
//
// Which cores a thread may run on, and a thread on some of them alone.
#pragma once

#include <sched.h>

#include <vector>

namespace ccom::bench {

std::vector<int> usable_cores();
// One of `allowed` in the memory domain of `core` that is not a second thread of it, else any other; -1: none.
int partner_of(int core, const std::vector<int>& allowed);

// This thread runs on these cores alone, until the end of the scope. Empty: no change.
class Pinned {
 public:
  explicit Pinned(const std::vector<int>& cores);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_{};
  bool changed_ = false;
};

}  // namespace ccom::bench
