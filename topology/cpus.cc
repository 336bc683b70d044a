// SPDX-License-Identifier: Apache-2.0
#include "topology/cpus.h"

#include <sched.h>

#include <algorithm>
#include <memory>

#include "topology/topology.h"

namespace ccom {
namespace {

constexpr int kMostCpus = 1 << 20;

// Empty if the kernel does not report it.
std::vector<int> affinity() {
  for (int most = 1024; most <= kMostCpus; most *= 4) {  // the set must be as large as the kernel's
    const auto release = [](cpu_set_t* set) { CPU_FREE(set); };
    const std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(static_cast<size_t>(most)), release);
    if (!set) return {};
    const size_t size_bytes = CPU_ALLOC_SIZE(static_cast<size_t>(most));
    if (sched_getaffinity(0, size_bytes, set.get()) != 0) continue;
    std::vector<int> cpus;
    for (int cpu = 0; cpu < most; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), size_bytes, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

// "Cpus_allowed_list:\t0-7"; may contain offline CPUs.
std::vector<int> recorded_affinity(const SysfsRoot& tree) {
  constexpr std::string_view kKey = "Cpus_allowed_list:";
  const std::vector<int> online = parse_cpu_list(tree.text("sys/devices/system/cpu/online").value_or(""));
  const std::string status = tree.text("proc/self/status").value_or("");
  for (const std::string_view line : split(status, '\n')) {
    if (!line.starts_with(kKey)) continue;
    std::vector<int> cpus = parse_cpu_list(line.substr(kKey.size()));
    if (!online.empty()) std::erase_if(cpus, [&](int cpu) { return !std::ranges::binary_search(online, cpu); });
    return cpus;
  }
  return online;
}

// ceil(quota / period) as a number of CPUs; 0 if unlimited.
int cpus_of(std::optional<int64_t> quota_us, std::optional<int64_t> period_us) {
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return 0;
  const int64_t whole = *quota_us / *period_us + (*quota_us % *period_us != 0 ? 1 : 0);
  return static_cast<int>(std::min<int64_t>(whole, kMostCpus));
}

int tighter(int a, int b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

int quota_v2(const SysfsRoot& tree, const std::string& folder) {
  const auto text = tree.text(folder + "/cpu.max");  // "150000 100000", "max 100000"
  if (!text) return 0;
  const auto words = split(*text, ' ');
  return words.size() == 2 ? cpus_of(integer_from(words[0]), integer_from(words[1])) : 0;
}

int quota_v1(const SysfsRoot& tree, const std::string& folder) {
  return cpus_of(tree.integer(folder + "/cpu.cfs_quota_us"), tree.integer(folder + "/cpu.cfs_period_us"));
}

// The smallest quota of the directories mount/path, its parents, ..., mount. A path that does not exist (the kernel
// reports the host's path, but a container's mount has another root) is skipped: the walk ends at the container's root.
template <typename Quota>
int tightest(const SysfsRoot& tree, const std::string& mount, std::string path, Quota quota) {
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
int quota_of_line(const SysfsRoot& tree, std::string_view line) {
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

int cgroup_cpu_quota(const SysfsRoot& tree) {
  int limit = 0;
  const std::string lines = tree.text("proc/self/cgroup").value_or("0::/");
  for (const std::string_view line : split(lines, '\n')) limit = tighter(limit, quota_of_line(tree, line));
  return limit;
}

std::vector<int> allowed_cpus(const SysfsRoot& tree) {
  std::vector<int> cpus = tree.is_live() ? affinity() : std::vector<int>();
  return cpus.empty() ? recorded_affinity(tree) : cpus;
}

int count_allowed_cpus(const SysfsRoot& tree) {
  return std::max(1, tighter(static_cast<int>(allowed_cpus(tree).size()), cgroup_cpu_quota(tree)));
}

namespace {

bool holds_all(const std::vector<int>& holder, const std::vector<int>& cpus) {
  return !cpus.empty() && std::ranges::includes(holder, cpus);
}

int numa_node_of(const SysfsRoot& tree, const std::vector<int>& cpus) {
  const std::string folder = "sys/devices/system/node";
  for (const std::string& name : tree.list(folder)) {
    const auto node = numbered(name, "node");
    if (node && holds_all(parse_cpu_list(tree.text(folder + "/" + name + "/cpulist").value_or("")), cpus)) return *node;
  }
  return -1;
}

// The lowest CPU of the third-level (or higher) cache shared by all of them.
int cache_group_of(const SysfsRoot& tree, const std::vector<int>& cpus) {
  if (cpus.empty()) return -1;
  const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(cpus.front()) + "/cache";
  int64_t highest = 2;
  std::vector<int> sharers;
  for (const std::string& name : tree.list(folder)) {
    const int64_t level = tree.integer(folder + "/" + name + "/level").value_or(0);
    if (level <= highest) continue;
    highest = level;
    sharers = parse_cpu_list(tree.text(folder + "/" + name + "/shared_cpu_list").value_or(""));
  }
  return holds_all(sharers, cpus) ? sharers.front() : -1;
}

}  // namespace

Locality discover_locality(const std::string& root) {
  const SysfsRoot tree(root);
  Locality locality;
  locality.cpus = allowed_cpus(tree);
  locality.cpu_quota = cgroup_cpu_quota(tree);
  locality.numa_node = numa_node_of(tree, locality.cpus);
  locality.cache_group = cache_group_of(tree, locality.cpus);
  return locality;
}

}  // namespace ccom
