// SPDX-License-Identifier: Apache-2.0
//
// Which relay speaks to which: those that others can reach are a tree in the order in which they came.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/gathering.h"

namespace ccom {

class RelayTree {
 public:
  // That many speak to the server, and to each relay.
  explicit RelayTree(int degree) : degree_(static_cast<size_t>(degree)) {}

  // Where the relay is to go that can be reached there; "": it speaks to the server. Nobody speaks to that of rank 0,
  // whose process runs the server.
  std::string way_of(const Caller& relay, const std::string& reached_at) {
    if (reached_at.empty() || relay.rank == 0) return {};
    const auto known = std::ranges::find(relays_, relay.token, &std::pair<uint64_t, std::string>::first);
    const auto index = static_cast<size_t>(known - relays_.begin());
    if (known == relays_.end()) relays_.emplace_back(relay.token, reached_at);
    return index < degree_ ? std::string() : relays_[(index - degree_) / degree_].second;
  }

 private:
  const size_t degree_;
  std::vector<std::pair<uint64_t, std::string>> relays_;
};

}  // namespace ccom
