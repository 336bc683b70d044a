// SPDX-License-Identifier: Apache-2.0
//
// Room-private: reads small files below a root folder, the machine's own "/" or a recorded copy. What cannot be read is
// absent, whatever the reason: no such file, no permission, not a file at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ccom {

// The first `limit_bytes` bytes of a regular file. Never blocks: pipes and devices are refused.
Result<std::string> read_file(const std::string& path, size_t limit_bytes);

class SysfsRoot {
 public:
  explicit SysfsRoot(std::string root) : root_(std::move(root)) {}

  // Is this the running machine, so that the calling process may be asked as well?
  bool is_live() const { return root_ == "/"; }
  const std::string& root() const { return root_; }

  // The contents without white space at either end; unprintable bytes become '?'. Paths are relative to the root.
  std::optional<std::string> text(const std::string& path) const;
  std::optional<int64_t> integer(const std::string& path) const;   // the whole text is one
  std::vector<std::string> list(const std::string& folder) const;  // names, sorted
  std::optional<std::string> link_target(const std::string& path) const;
  bool exists(const std::string& path) const;

 private:
  std::string absolute(const std::string& path) const { return root_ + "/" + path; }
  std::string root_;
};

std::string_view trimmed(std::string_view text);
std::optional<int64_t> integer_from(std::string_view text);  // the whole text is one
// The parts between separators, trimmed; empty ones are left out.
std::vector<std::string_view> split(std::string_view text, char separator);
// "0-47,96-143" -> 96; 0 if it is no such list.
int count_cpu_list(std::string_view text);
// The CPUs themselves, ascending, each once; empty if it is no such list.
std::vector<int> parse_cpu_list(std::string_view text);
// The N of "neuron12" for the prefix "neuron".
std::optional<int> numbered(std::string_view name, std::string_view prefix);

}  // namespace ccom
