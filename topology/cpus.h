// SPDX-License-Identifier: Apache-2.0
//
// Room-private: how many CPUs a job may use, which is what the waiting rules and the memory cost model need; a
// container on a big machine often has few.
#pragma once

#include "topology/tree.h"

namespace ccom {

// At least 1: the affinity of this process (of a recorded tree: the CPUs online there), or the cgroup's quota if that
// is less.
int count_allowed_cpus(const Tree& tree);
// ceil(quota / period) of the tightest cgroup on the way from the process's own up to the root, version 1 or 2; 0
// without a quota.
int cgroup_cpu_quota(const Tree& tree);

}  // namespace ccom
