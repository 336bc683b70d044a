// SPDX-License-Identifier: Apache-2.0
#include "memory/available_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace ccom {
namespace {

constexpr uint64_t kUnlimited = UINT64_MAX;

// These files are complete after one read; content beyond 16 KiB is not needed.
std::string read_small_file(const std::string& path) {
  std::array<char, 16384> buffer;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t length = ::read(fd, buffer.data(), buffer.size());
  ::close(fd);
  return length > 0 ? std::string(buffer.data(), static_cast<size_t>(length)) : std::string();
}

// The number after the first `key` at the start of a line; an empty key means the start of the text.
std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  size_t at = 0;
  while (text.substr(at, key.size()) != key) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return std::nullopt;
    ++at;
  }
  at = text.find_first_not_of(" \t", at + key.size());
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// Page cache that the kernel reclaims first counts as free.
uint64_t room_in_group(const std::string& folder, const char* limit, const char* usage, const char* reclaimable) {
  const auto limit_bytes = number_after(read_small_file(folder + limit), "");
  const auto usage_bytes = number_after(read_small_file(folder + usage), "");
  if (!limit_bytes || !usage_bytes) return kUnlimited;
  const uint64_t cache_bytes = number_after(read_small_file(folder + "/memory.stat"), reclaimable).value_or(0);
  const uint64_t held_bytes = *usage_bytes - std::min(*usage_bytes, cache_bytes);
  return *limit_bytes - std::min(*limit_bytes, held_bytes);
}

// The limit of the group and of all its ancestors: `mount` + "/a/b", "/a", "".
uint64_t room_up_to_root(const std::string& mount, std::string group, const char* limit, const char* usage,
                         const char* reclaimable) {
  uint64_t room = kUnlimited;
  if (group == "/") group.clear();
  while (true) {
    room = std::min(room, room_in_group(mount + group, limit, usage, reclaimable));
    if (group.empty()) return room;
    const size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

// /proc/self/cgroup has lines "0::/group" (version 2) and "4:memory:/group" (version 1).
uint64_t room_in_groups(const std::string& root) {
  const std::string text = read_small_file(root + "/proc/self/cgroup");
  uint64_t room = kUnlimited;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t colon = line.find(":/");
    at = end + 1;
    if (colon == std::string::npos) continue;
    const std::string group = line.substr(colon + 1);
    if (line.starts_with("0::")) {
      room = std::min(
          room, room_up_to_root(root + "/sys/fs/cgroup", group, "/memory.max", "/memory.current", "inactive_file "));
    } else if (line.find(":memory:") != std::string::npos) {
      room = std::min(room, room_up_to_root(root + "/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes",
                                            "/memory.usage_in_bytes", "total_inactive_file "));
    }
  }
  return room;
}

}  // namespace

uint64_t available_memory_bytes(const std::string& root) {
  const auto free_kib = number_after(read_small_file(root + "/proc/meminfo"), "MemAvailable:");
  return std::min(free_kib ? *free_kib * 1024 : kUnlimited, room_in_groups(root));
}

}  // namespace ccom
