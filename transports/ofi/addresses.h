// SPDX-License-Identifier: Apache-2.0
//
// Packs the addresses of several endpoints, each preceded by its length, because provider addresses have arbitrary
// length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ccom::ofi {

inline std::string join_addresses(const std::vector<std::string>& addresses) {
  std::string joined;
  for (const std::string& address : addresses) {
    joined += static_cast<char>(address.size() >> 8);
    joined += static_cast<char>(address.size());
    joined += address;
  }
  return joined;
}

// Empty if malformed.
inline std::vector<std::string> split_addresses(std::string_view joined) {
  std::vector<std::string> addresses;
  while (joined.size() >= 2) {
    const size_t length = size_t{static_cast<unsigned char>(joined[0])} << 8 | static_cast<unsigned char>(joined[1]);
    joined.remove_prefix(2);
    if (length > joined.size()) return {};
    addresses.emplace_back(joined.substr(0, length));
    joined.remove_prefix(length);
  }
  return joined.empty() ? addresses : std::vector<std::string>();
}

}  // namespace ccom::ofi
