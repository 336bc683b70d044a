// SPDX-License-Identifier: Apache-2.0
//
// Room-private: which CPUs a job may use, and how many, which is what the waiting rules and the memory cost model need;
// a container on a big machine often has few. discover_locality() is here too.
#pragma once

#include <vector>

#include "topology/sysfs_root.h"

namespace ccom {

// Ascending: the affinity of this thread; of a recorded tree that of proc/self/status, or all CPUs online there. Empty:
// unknown.
std::vector<int> allowed_cpus(const SysfsRoot& tree);
// At least 1: as many, or the cgroup's quota if that is less.
int count_allowed_cpus(const SysfsRoot& tree);
// ceil(quota / period) of the tightest cgroup on the way from the process's own up to the root, version 1 or 2; 0
// without a quota.
int cgroup_cpu_quota(const SysfsRoot& tree);

}  // namespace ccom
