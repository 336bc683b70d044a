// SPDX-License-Identifier: Apache-2.0
#include "topology/sysfs_root.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <system_error>

#include "base/files.h"

namespace ccom {
namespace {

constexpr std::string_view kSpace(" \t\r\n\0", 5);
// Enough for the first CPUs in /proc/cpuinfo; all other files are shorter.
constexpr size_t kTextBytes = 64 << 10;

}  // namespace

std::optional<std::string> SysfsRoot::text(const std::string& path) const {
  const Result<std::string> contents = read_beginning(absolute(path), kTextBytes);
  if (!contents) return std::nullopt;
  std::string text(trimmed(*contents));
  std::ranges::replace_if(
      text, [](char c) { return (c < ' ' && c != '\n' && c != '\t') || c > '~'; }, '?');
  return text;
}

std::optional<int64_t> SysfsRoot::integer(const std::string& path) const {
  const auto contents = text(path);
  return contents ? integer_from(*contents) : std::nullopt;
}

std::vector<std::string> SysfsRoot::list(const std::string& folder) const {
  std::vector<std::string> names;
  for_each_entry(absolute(folder), [&names](std::string_view name) {
    if (name != "." && name != "..") names.emplace_back(name);
  });
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> SysfsRoot::link_target(const std::string& path) const {
  std::error_code failure;
  const auto target = std::filesystem::read_symlink(absolute(path), failure);
  if (failure) return std::nullopt;
  return target.string();
}

bool SysfsRoot::exists(const std::string& path) const {
  std::error_code failure;
  return std::filesystem::exists(absolute(path), failure);
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<int64_t> integer_from(std::string_view text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (const auto part = trimmed(text.substr(0, end)); !part.empty()) parts.push_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<int> parse_cpu_list(std::string_view text) {
  constexpr int64_t kMostCpus = 1 << 20;
  std::vector<int> cpus;
  for (const std::string_view part : split(text, ',')) {
    const size_t dash = part.find('-');
    const auto first = integer_from(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : integer_from(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    if (static_cast<int64_t>(cpus.size()) + *last - *first + 1 > kMostCpus) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

int count_cpu_list(std::string_view text) { return static_cast<int>(parse_cpu_list(text).size()); }

std::optional<int> numbered(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto number = integer_from(name.substr(prefix.size()));
  if (!number || *number < 0 || *number > std::numeric_limits<int>::max()) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace ccom
