// SPDX-License-Identifier: Apache-2.0
#include "base/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

namespace ccom {
namespace {

// Bridges and veth ends of container engines and hypervisors: they lead to no other host.
constexpr std::array<std::string_view, 13> kVirtualPrefixes = {
    "docker", "veth", "virbr", "br-", "cni", "cali", "cilium", "flannel", "kube-", "lxc", "lxdbr", "podman", "weave"};

bool is_virtual(const Interface& interface) {
  return std::ranges::any_of(kVirtualPrefixes, [&interface](std::string_view prefix) {
    return std::string_view(interface.name).starts_with(prefix);
  });
}

// Smaller is preferred.
int preference(const Interface& interface) {
  const int family = interface.is_ipv6 ? 1 : 0;
  if (interface.is_loopback) return 4 + family;
  return (is_virtual(interface) ? 2 : 0) + family;
}

bool is_ordinary(const Interface& interface) { return !interface.is_loopback && !is_virtual(interface); }

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Splits a comma-separated list; empty if the text is malformed.
std::vector<std::string_view> split_names(std::string_view text) {
  std::vector<std::string_view> names;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view name = trimmed(text.substr(0, comma));
    if (name.empty() || name.find('^') != std::string_view::npos) return {};
    names.push_back(name);
    if (comma == std::string_view::npos) return names;
    text.remove_prefix(comma + 1);
  }
}

std::string describe_all(const std::vector<Interface>& all) {
  std::string text;
  for (const Interface& interface : all) {
    text += (text.empty() ? "" : ", ") + interface.name + " (" + interface.address + ")";
  }
  return text.empty() ? "none is up" : text;
}

Status no_match(std::string_view filter, const std::vector<Interface>& all, const char* reason) {
  return error(ErrorKey::NoSuchInterface, "CCOM_SOCKET_IFNAME=\"%s\": %s; this host has: %s",
               std::string(filter).c_str(), reason, describe_all(all).c_str())
      .with_cure(
          "set CCOM_SOCKET_IFNAME to a list of exact names (eth0,eth1), to ^ and names to exclude (^docker0,lo), "
          "or unset it");
}

void sort_by_preference(std::vector<Interface>& interfaces) { std::ranges::stable_sort(interfaces, {}, preference); }

std::vector<Interface> choose_automatically(const std::vector<Interface>& all) {
  std::vector<Interface> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen), is_ordinary);
  if (chosen.empty()) std::ranges::copy_if(all, std::back_inserter(chosen), &Interface::is_loopback);
  sort_by_preference(chosen);
  return chosen;
}

std::vector<Interface> choose_others(const std::vector<std::string_view>& excluded, const std::vector<Interface>& all) {
  std::vector<Interface> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen), [&excluded](const Interface& interface) {
    return std::ranges::find(excluded, interface.name) == excluded.end();
  });
  sort_by_preference(chosen);
  return chosen;
}

// In the order of the list; IPv4 first if an interface has both.
std::vector<Interface> choose_named(const std::vector<std::string_view>& names, const std::vector<Interface>& all) {
  std::vector<Interface> chosen;
  for (const std::string_view name : names) {
    for (const bool ipv6 : {false, true}) {
      std::ranges::copy_if(all, std::back_inserter(chosen), [name, ipv6](const Interface& interface) {
        return interface.name == name && interface.is_ipv6 == ipv6;
      });
    }
  }
  return chosen;
}

std::optional<Interface> to_interface(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  const int family = entry.ifa_addr->sa_family;
  if (family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr;
  } else if (family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&address)) return std::nullopt;
    bytes = &address;
  }
  if (bytes == nullptr || ::inet_ntop(family, bytes, text.data(), text.size()) == nullptr) return std::nullopt;
  return Interface{.name = entry.ifa_name,
                   .address = text.data(),
                   .is_ipv6 = family == AF_INET6,
                   .is_loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0};
}

Result<std::vector<Interface>> read_interfaces() {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) return system_error(errno, "list the interfaces of this host");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(head, &::freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = head; entry != nullptr; entry = entry->ifa_next) {
    if (auto interface = to_interface(*entry)) found.push_back(*std::move(interface));
  }
  return found;
}

}  // namespace

std::vector<Interface> list_interfaces() {
  auto found = read_interfaces();
  return found ? *std::move(found) : std::vector<Interface>();
}

Result<std::vector<Interface>> choose_interfaces(std::string_view filter) {
  CCOM_TRY_ASSIGN(const std::vector<Interface> all, read_interfaces());
  return choose_interfaces(filter, all);
}

Result<std::vector<Interface>> choose_interfaces(std::string_view filter, const std::vector<Interface>& all) {
  const std::string_view text = trimmed(filter);
  const bool excludes = text.starts_with('^');
  std::vector<Interface> chosen;
  if (text.empty()) {
    chosen = choose_automatically(all);
  } else {
    const auto names = split_names(excludes ? text.substr(1) : text);
    if (names.empty()) return no_match(filter, all, "expected comma-separated names, with ^ only before the first");
    chosen = excludes ? choose_others(names, all) : choose_named(names, all);
  }
  if (!chosen.empty()) return chosen;
  if (text.find('=') != std::string_view::npos) return no_match(filter, all, "names are always exact; omit the =");
  if (text.empty()) return no_match(filter, all, "no interface qualifies unless it is named");
  return no_match(filter, all, excludes ? "it excludes every interface" : "no interface has this name");
}

}  // namespace ccom
