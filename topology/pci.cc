// SPDX-License-Identifier: Apache-2.0
#include "topology/pci.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace ccom {
namespace {

// Hexadecimal with at most `digits` digits; -1 if malformed.
int64_t hexadecimal(std::string_view text, size_t digits) {
  int64_t value = 0;
  if (text.empty() || text.size() > digits || text.front() == '-') return -1;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return failure == std::errc() && end == text.data() + text.size() ? value : -1;
}

}  // namespace

std::string normalised_pci(std::string_view text) {
  text = trimmed(text);
  const size_t dot = text.rfind('.');
  const size_t slot_colon = text.rfind(':');
  if (dot == std::string_view::npos || slot_colon == std::string_view::npos || slot_colon == 0 || dot < slot_colon) {
    return {};
  }
  const size_t bus_colon = text.rfind(':', slot_colon - 1);
  const bool has_domain = bus_colon != std::string_view::npos;
  const size_t bus_start = has_domain ? bus_colon + 1 : 0;
  const int64_t domain = has_domain ? hexadecimal(text.substr(0, bus_colon), 8) : 0;
  const int64_t bus = hexadecimal(text.substr(bus_start, slot_colon - bus_start), 2);
  const int64_t slot = hexadecimal(text.substr(slot_colon + 1, dot - slot_colon - 1), 2);
  const int64_t function = hexadecimal(text.substr(dot + 1), 1);
  if (domain < 0 || bus < 0 || slot < 0 || slot > 31 || function < 0 || function > 7) return {};
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%04llx:%02x:%02x.%x", static_cast<unsigned long long>(domain),
                static_cast<unsigned>(bus), static_cast<unsigned>(slot), static_cast<unsigned>(function));
  return buffer;
}

std::string_view bus_of(std::string_view pci) { return pci.substr(0, pci.rfind(':')); }

std::string pci_path(const SysfsRoot& tree, const std::string& pci) {
  if (pci.empty()) return {};
  const std::string target = tree.link_target("sys/bus/pci/devices/" + pci).value_or("");
  const size_t start = target.find("/devices/");  // "../../../devices/pci0000:00/0000:00:1e.0"
  if (start == std::string::npos || !target.ends_with("/" + pci)) return {};
  return target.substr(start + std::string_view("/devices/").size());
}

int shared_bridges(std::string_view a, std::string_view b) {
  const auto first = split(a, '/');
  const auto second = split(b, '/');
  const auto ends = std::ranges::mismatch(first, second);
  return static_cast<int>(ends.in1 - first.begin());
}

}  // namespace ccom
