// SPDX-License-Identifier: Apache-2.0
#include "bench/cores.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace ccom::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpu_folder(int core) { return "/sys/devices/system/cpu/cpu" + std::to_string(core); }

std::string domain_of(int core) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(cpu_folder(core), ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node")) return name;
  }
  return "";
}

}  // namespace

std::vector<int> usable_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

int partner_of(int core, const std::vector<int>& allowed) {
  const auto threads = [](int cpu) { return first_line(cpu_folder(cpu) + "/topology/thread_siblings_list"); };
  const std::string domain = domain_of(core), siblings = threads(core);
  int other = -1;
  for (const int candidate : allowed) {
    if (candidate == core) continue;
    if (domain_of(candidate) == domain && (siblings.empty() || threads(candidate) != siblings)) return candidate;
    if (other < 0) other = candidate;
  }
  return other;
}

Pinned::Pinned(const std::vector<int>& cores) {
  if (cores.empty() || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  changed_ = ::sched_setaffinity(0, sizeof set, &set) == 0;
}

Pinned::~Pinned() {
  if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace ccom::bench
