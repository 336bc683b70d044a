// SPDX-License-Identifier: Apache-2.0
//
// Room-private: reads small files below a root directory, the machine's "/" or a recorded copy. Whatever cannot be read
// is absent, for any reason: no such file, no permission, not a regular file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace ccom {

class SysfsRoot {
 public:
  explicit SysfsRoot(std::string root) : root_(std::move(root)) {}

  // Whether this is the running machine, so that the calling process may be queried too.
  bool is_live() const { return root_ == "/"; }
  const std::string& root() const { return root_; }

  // The contents without surrounding white space; unprintable bytes become '?'. Paths are relative to the root.
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
// The parts between separators, trimmed; empty ones are omitted.
std::vector<std::string_view> split(std::string_view text, char separator);
// "0-47,96-143" -> 96; 0 if malformed.
int count_cpu_list(std::string_view text);
// The CPUs, ascending and unique; empty if malformed.
std::vector<int> parse_cpu_list(std::string_view text);
// The N of "neuron12" for the prefix "neuron".
std::optional<int> numbered(std::string_view name, std::string_view prefix);

}  // namespace ccom
