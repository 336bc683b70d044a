// SPDX-License-Identifier: Apache-2.0
//
// Hosts of a kind, and the ranks on them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/harness/results.h"
#include "topology/topology.h"

namespace ccom {

struct HostKind {
  int cpus = 8;
  double bytes_per_second = 0;  // of its card, if it has one
  std::string fabric{};         // "": none
  std::vector<Cache> caches{};
};

// hosts[i] ranks on host i, host by host, or dealt out in turn.
inline Topology ranks_on(std::vector<int> hosts, const HostKind& kind = {}, bool in_turn = false) {
  RankView view;
  view.host.cpus = kind.cpus;
  view.host.caches = kind.caches;
  if (kind.bytes_per_second > 0)
    view.host.nics = {{.name = "eth0", .kind = "ethernet", .bytes_per_second = kind.bytes_per_second}};
  if (!kind.fabric.empty()) view.host.imposed = value_of(make_fabric(kind.fabric));
  std::vector<RankView> views;
  while (std::ranges::any_of(hosts, [](int left) { return left > 0; })) {
    for (size_t host = 0; host < hosts.size(); ++host) {
      view.host.id = view.host.name = "host" + std::to_string(host);
      for (int& left = hosts[host]; left > 0;) {
        views.push_back(view);
        --left;
        if (in_turn) break;
      }
    }
  }
  return value_of(merge(views));
}

}  // namespace ccom
