// SPDX-License-Identifier: Apache-2.0
//
// How a rank comes by its monitor, and by the control connections that it shares with what it is a part of.
#include <algorithm>

#include "liveness/control_family.h"
#include "liveness/monitor_config.h"
#include "setup/comm_setup.h"
#include "setup/exchanges.pb.h"

namespace ccom {

MonitorConfig CommSetup::monitor_config() const {
  MonitorConfig monitor;
  monitor.rank = membership_.rank;
  for (int host = 0; host < static_cast<int>(topology_.hosts.size()); ++host) {
    monitor.hosts.push_back({topology_.hosts[static_cast<size_t>(host)].name, topology_.ranks_of(host)});
  }
  monitor.host_index = topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  monitor.key = membership_.secret.derive("ccom control");
  monitor.communicator = membership_.communicator;
  monitor.dead_ms = config_.dead_ms;
  monitor.warn_ms = config_.warn_ms;
  monitor.interrupted = config_.interrupted;
  monitor.tls = config_.tls;
  monitor.bind_address = network_.address;
  monitor.ports = config_.ports;
  monitor.family = family_;
  if (family_ != nullptr) monitor.members = members_;
  return monitor;
}

Status CommSetup::make_monitor(bool initialise) {
  CCOM_TRY_ASSIGN(monitor_, Monitor::create(monitor_config(), segment_->board(), initialise));
  begun_ns_ = monotonic_ns();
  show();
  return {};
}

// What this rank has of the connections that its control trees need.
void CommSetup::describe_control(wire::Capabilities& mine) const {
  if (family_ == nullptr || topology_.hosts.size() == 1) return;
  std::vector<Rank> neighbours;
  for (const TreeEdge& edge : tree_edges(monitor_config()))
    neighbours.push_back(members_[static_cast<size_t>(edge.rank)]);
  for (const HeldConnection& held : family_->held(config_.tls)) {
    if (std::ranges::find(neighbours, held.peer) == neighbours.end()) continue;
    wire::ControlConnection& said = *mine.add_control();
    said.set_peer(held.peer);
    said.set_number(held.number);
  }
}

Status CommSetup::prepare_control(const std::vector<wire::Capabilities>& all) {
  std::vector<std::vector<HeldConnection>> held(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank)
    for (const wire::ControlConnection& each : all[rank].control()) held[rank].push_back({each.peer(), each.number()});
  family_.reset();  // the monitor has it, which gives it up on the liveness thread
  return monitor_->prepare(held);
}

}  // namespace ccom
