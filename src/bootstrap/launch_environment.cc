// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launch_environment.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

namespace ccom {
namespace {

Status bad_list(const char* name, std::string_view list, const char* why) {
  return error(Code::ConfigError, "%s=%.*s: %s", name, static_cast<int>(list.size()), list.data(), why);
}

}  // namespace

const char* get_variable(const EnvironmentLookup& environment, const char* name) {
  const char* value = name == nullptr ? nullptr : environment(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

Result<uint64_t> parse_variable(const char* name, const char* text, uint64_t low, uint64_t high) {
  uint64_t value = 0;
  const std::string_view view(text);
  const auto [end, failure] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (failure == std::errc() && end == view.data() + view.size() && value >= low && value <= high) return value;
  return error(Code::ConfigError, "%s=%s: expected an integer from %llu to %llu", name, text,
               static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
}

Result<int> optional_number(const EnvironmentLookup& environment, const char* name, uint64_t low) {
  const char* text = get_variable(environment, name);
  if (text == nullptr) return -1;
  CCOM_TRY_ASSIGN(const uint64_t value, parse_variable(name, text, low, std::numeric_limits<int>::max()));
  return static_cast<int>(value);
}

Status contradiction(const char* name, int value, const char* limit_name, int limit) {
  return error(Code::ConfigError, "%s=%d is inconsistent with %s=%d", name, value, limit_name, limit);
}

Result<std::vector<std::string>> parse_host_names(const char* name, const char* json) {
  const nlohmann::json list = nlohmann::json::parse(json, nullptr, false);
  if (!list.is_array() || list.empty()) return bad_list(name, json, "expected a JSON list of host names");
  std::vector<std::string> hosts;
  for (const nlohmann::json& host : list) {
    if (!host.is_string()) return bad_list(name, json, "expected a JSON list of host names");
    hosts.push_back(host.get<std::string>());
  }
  return hosts;
}

bool is_slurm_step(const EnvironmentLookup& environment) {
  constexpr uint64_t kReserved = 0xfffffff0;  // and those above: interactive, batch, extern
  const char* step = get_variable(environment, "SLURM_STEP_ID");
  if (step == nullptr) return false;
  const auto number = parse_variable("SLURM_STEP_ID", step, 0, std::numeric_limits<uint32_t>::max());
  return number && *number < kReserved;
}

Result<int> tasks_of_node(const char* name, std::string_view list, int node) {
  std::string_view rest = list;
  for (int first = 0; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    int tasks = 0;
    int nodes = 1;
    const char* end = part.data() + part.size();
    std::from_chars_result read = std::from_chars(part.data(), end, tasks);
    if (read.ec == std::errc() && std::string_view(read.ptr, end).starts_with("(x")) {
      read = std::from_chars(read.ptr + 2, end, nodes);
      if (std::string_view(read.ptr, end) != ")") break;
      ++read.ptr;
    }
    if (read.ec != std::errc() || read.ptr != end || tasks < 1 || nodes < 1) break;
    if (node - first < nodes) return tasks;
    first += nodes;
  }
  return bad_list(name, list, "expected numbers of tasks for each node, such as 4(x2),3");
}

// Brackets contain numbers and ranges of numbers; a name may have several brackets: rack[0-1]node[0-3].
Result<std::string> first_node(const char* name, std::string_view list) {
  std::string node;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] == ']') return bad_list(name, list, "] without [");
    if (list[i] != '[') {
      node.push_back(list[i]);
      continue;
    }
    const size_t close = list.find(']', i);
    if (close == std::string_view::npos) return bad_list(name, list, "[ without ]");
    const std::string_view inside = list.substr(i + 1, close - i - 1);
    const std::string_view number = inside.substr(0, inside.find_first_of(",-"));
    if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos) {
      return bad_list(name, list, "expected numbers and ranges between [ and ]");
    }
    node += number;
    i = close;
  }
  if (node.empty()) return bad_list(name, list, "expected a host name");
  return node;
}

}  // namespace ccom
