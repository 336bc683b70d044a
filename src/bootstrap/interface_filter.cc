// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/interface_filter.h"

#include <algorithm>
#include <sstream>

#include "bootstrap/launch_environment.h"

namespace ccom {
namespace {

// The names of this host's interfaces that match an entry of `list`, without duplicates, comma-separated.
std::string matching(std::string_view list, bool whole_names, const std::vector<Interface>& all) {
  std::vector<std::string> found;
  std::istringstream entries{std::string(list)};
  for (std::string entry; std::getline(entries, entry, ',');) {
    for (const Interface& interface : all) {
      const bool fits = whole_names ? interface.name == entry : interface.name.starts_with(entry);
      if (fits && !entry.empty() && std::ranges::find(found, interface.name) == found.end()) {
        found.push_back(interface.name);
      }
    }
  }
  std::string text;
  for (const std::string& name : found) text += (text.empty() ? "" : ",") + name;
  return text;
}

bool take(std::string_view& text, char first) {
  if (!text.starts_with(first)) return false;
  text.remove_prefix(1);
  return true;
}

Status names_none(const char* name, const char* value, const std::vector<Interface>& all) {
  std::string names;
  for (const Interface& interface : all) {
    if (names.find(interface.name) == std::string::npos) names += (names.empty() ? "" : ", ") + interface.name;
  }
  return error(ErrorKey::NoSuchInterface, "%s=%s matches no interface of this host, which has: %s", name, value,
               names.empty() ? "none" : names.c_str())
      .with_cure("set CCOM_SOCKET_IFNAME, which takes precedence");
}

}  // namespace

Result<InterfaceFilter> read_interface_filter(const EnvironmentLookup& environment, const std::vector<Interface>& all) {
  if (const char* own = get_variable(environment, "CCOM_SOCKET_IFNAME")) {
    return InterfaceFilter{.text = own, .origin = "CCOM_SOCKET_IFNAME"};
  }
  if (const char* value = get_variable(environment, "NCCL_SOCKET_IFNAME")) {
    std::string_view list = value;
    const bool excludes = take(list, '^');
    const bool whole_names = take(list, '=');
    const std::string names = matching(list, whole_names, all);
    if (names.empty() && !excludes) return names_none("NCCL_SOCKET_IFNAME", value, all);
    // If nothing on this host is excluded, the automatic choice applies, which excludes what such lists usually name.
    return InterfaceFilter{.text = excludes && !names.empty() ? "^" + names : names, .origin = "NCCL_SOCKET_IFNAME"};
  }
  for (const char* name : {"GLOO_SOCKET_IFNAME", "SM_NETWORK_INTERFACE_NAME"}) {
    const char* value = get_variable(environment, name);
    if (value == nullptr) continue;
    const std::string names = matching(value, true, all);
    if (names.empty()) return names_none(name, value, all);
    return InterfaceFilter{.text = names, .origin = name};
  }
  return InterfaceFilter{};
}

}  // namespace ccom
