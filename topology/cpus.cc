// SPDX-License-Identifier: Apache-2.0
#include "topology/cpus.h"

#include <sched.h>

#include <algorithm>
#include <memory>

namespace ccom {
namespace {

constexpr int kMostCpus = 1 << 20;

// 0 if the kernel does not say.
int count_affinity() {
  for (int cpus = 1024; cpus <= kMostCpus; cpus *= 4) {  // the set must be as large as the kernel's own
    const auto release = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(static_cast<size_t>(cpus)), release);
    if (!set) return 0;
    const size_t size_bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    if (sched_getaffinity(0, size_bytes, set.get()) == 0) return CPU_COUNT_S(size_bytes, set.get());
  }
  return 0;
}

int count_online(const Tree& tree) {
  if (const auto online = tree.text("sys/devices/system/cpu/online")) return count_cpu_list(*online);
  return 0;
}

// ceil(quota / period) as a number of CPUs; 0 if that is no limit.
int cpus_of(std::optional<int64_t> quota_us, std::optional<int64_t> period_us) {
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return 0;
  const int64_t whole = *quota_us / *period_us + (*quota_us % *period_us != 0 ? 1 : 0);
  return static_cast<int>(std::min<int64_t>(whole, kMostCpus));
}

int tighter(int a, int b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

int quota_v2(const Tree& tree, const std::string& folder) {
  const auto text = tree.text(folder + "/cpu.max");  // "150000 100000", "max 100000"
  if (!text) return 0;
  const auto words = split(*text, ' ');
  return words.size() == 2 ? cpus_of(integer_from(words[0]), integer_from(words[1])) : 0;
}

int quota_v1(const Tree& tree, const std::string& folder) {
  return cpus_of(tree.integer(folder + "/cpu.cfs_quota_us"), tree.integer(folder + "/cpu.cfs_period_us"));
}

// The tightest quota of the folders mount/path, mount/parent of path, ..., mount. A path that is not there (the kernel
// reports the host's path, a container's mount has another root) costs nothing: the walk ends at the container's own
// root.
template <typename Quota>
int tightest(const Tree& tree, const std::string& mount, std::string path, Quota quota) {
  if (path.find("..") != std::string::npos) path.clear();  // above the mount's root; only the root is visible
  int limit = 0;
  for (;;) {
    limit = tighter(limit, quota(tree, mount + path));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

// One line of proc/self/cgroup: "0::/job" (version 2) or "4:cpu,cpuacct:/job".
int quota_of_line(const Tree& tree, std::string_view line) {
  const size_t first = line.find(':');
  const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return 0;
  const std::string controllers(line.substr(first + 1, second - first - 1));
  const std::string path(line.substr(second + 1));
  if (controllers.empty()) return tightest(tree, "sys/fs/cgroup", path, quota_v2);
  const auto names = split(controllers, ',');
  if (std::ranges::find(names, "cpu") == names.end()) return 0;
  const int joint = tightest(tree, "sys/fs/cgroup/" + controllers, path, quota_v1);
  return tighter(joint, tightest(tree, "sys/fs/cgroup/cpu", path, quota_v1));
}

}  // namespace

int cgroup_cpu_quota(const Tree& tree) {
  int limit = 0;
  const std::string lines = tree.text("proc/self/cgroup").value_or("0::/");
  for (const std::string_view line : split(lines, '\n')) limit = tighter(limit, quota_of_line(tree, line));
  return limit;
}

int count_allowed_cpus(const Tree& tree) {
  int cpus = tree.is_live() ? count_affinity() : 0;
  if (cpus == 0) cpus = count_online(tree);
  return std::max(1, tighter(cpus, cgroup_cpu_quota(tree)));
}

}  // namespace ccom
