// SPDX-License-Identifier: Apache-2.0
//
// Room-private: which CPUs a job may use and how many, for the wait policy and the memory cost model; containers on
// large machines often have few. Also contains discover_locality().
#pragma once

#include <vector>

#include "topology/sysfs_root.h"

namespace ccom {

// Ascending: the affinity of this thread; of a recorded tree that of proc/self/status, or all CPUs online there. Empty:
// unknown.
std::vector<int> allowed_cpus(const SysfsRoot& tree);
// At least 1; limited by the cgroup's quota.
int count_allowed_cpus(const SysfsRoot& tree);
// ceil(quota / period) of the tightest cgroup from the process's own up to the root, version 1 or 2; 0 without a quota.
int cgroup_cpu_quota(const SysfsRoot& tree);

}  // namespace ccom
