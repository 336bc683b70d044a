// SPDX-License-Identifier: Apache-2.0
//
// What joins this rank to the others: the host's shared segment, the monitor, and the sets of transports.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/measured_costs.h"
#include "base/time.h"
#include "base/wait_limit.h"
#include "bootstrap/rendezvous.h"
#include "engine/bound_plan.h"
#include "liveness/monitor.h"
#include "messages/messages.h"
#include "messages/relay.h"
#include "metrics/exporter.h"
#include "node/shm_collectives.h"
#include "observe/listing.h"
#include "setup/arena_exchange.h"
#include "setup/config.h"
#include "setup/host_network.h"
#include "setup/host_segment.h"
#include "setup/membership.h"
#include "setup/transport_set.h"
#include "topology/rank_routes.h"
#include "topology/topology.h"
#include "transports/shm/factory.h"
#include "transports/transport.h"

namespace ccom {

namespace wire {
class Addresses;
class Capabilities;
class Connected;
}  // namespace wire

// Belongs to one thread at a time, but for monitor().
class CommSetup final : public ChannelSource {
 public:
  // The name of the exchange that the caller of connect() makes last, where ranks say whether they can begin.
  static constexpr const char* kLastExchange = "node";

  // Collective and blocking; every rank returns an error if one does. channels: of plans, by peer; a function of the
  // topology and the settings, so that both ends of a pair count alike.
  // imitated: the hosts that plans are made for and whose speeds are imitated: mostly `topology`. Both outlive it.
  // parent: null, or what joins the ranks of the communicator that this one is a part of; needed during the call only.
  // A part's ranks do not know yet whether all have reached one another: dialled() is to be exchanged with what they do
  // next.
  static Result<std::unique_ptr<CommSetup>> connect(const Membership& membership, const CommConfig& config,
                                                    const Topology& topology, const Topology& imitated,
                                                    std::vector<int> channels, Rendezvous& rendezvous,
                                                    Deadline deadline, const CommSetup* parent = nullptr);
  ~CommSetup() override;

  Result<ChannelRef> open(Rank peer, int index) override;
  Monitor& monitor() { return *monitor_; }
  int64_t begun_ns() const { return begun_ns_; }  // CLOCK_MONOTONIC, when all ranks had met
  const Status& dialled() const { return dialled_; }
  // Of plans.
  std::vector<Transport*> transports() const { return plans_->transports(); }
  std::string transport_names() const;  // "shm,tcp"
  uint64_t memory_bytes() const;
  // What a ShmCollectives over the ranks of this host needs; nothing unless shares_memory_freely().
  std::optional<NodeConfig> node_config() const;
  // Measured on this host, the same on all of its ranks.
  const MeasuredCosts& measured_costs() const { return measured_costs_; }
  bool has_measured() const { return has_measured_; }  // this rank, its own memory, for the first time in its process
  // What Messages needs; nothing unless the config asks for them, or this rank has to forward others'.
  Result<std::optional<MessageRoutes>> message_routes();

 private:
  CommSetup(const Membership& membership, const CommConfig& config, const Topology& topology, const Topology& imitated,
            std::vector<int> channels, const HostSegmentNeeds& needs, std::unique_ptr<HostSegment> segment);

  void inherit(const CommSetup& parent);
  WaitLimit until_failure(const WaitLimit& limit) const;
  bool inherits() const { return !arena_places_.empty(); }
  bool uses_network() const;
  size_t network_descriptors() const;
  Status join_segment(const std::vector<wire::Capabilities>& all, const WaitLimit& limit);

  // The steps of connect(), in this order; each takes what all ranks said in the exchange before it, by rank.
  Result<wire::Capabilities> create();
  void choose_capabilities(const std::vector<wire::Capabilities>& all);
  Result<wire::Addresses> share(const std::vector<wire::Capabilities>& all, const WaitLimit& limit);
  Result<wire::Connected> dial(const std::vector<wire::Addresses>& all, const WaitLimit& limit);
  Status agree_on_reach(const std::vector<wire::Connected>& all);

  MonitorConfig monitor_config() const;
  Status make_monitor(bool initialise);
  void describe_control(wire::Capabilities& mine) const;
  Status prepare_control(const std::vector<wire::Capabilities>& all);
  void show() noexcept;
  Status check_metrics() const;
  Status open_transports(wire::Addresses& mine);
  Status measure_costs(wire::Connected& report);
  Result<std::optional<LineCosts>> measure_lines();
  Status trade_arenas(const std::vector<wire::Addresses>& all, const WaitLimit& limit);
  bool can_use_efa() const;
  int message_channels_to(Rank peer) const;
  Status forward(MessageRoutes& routes);

  const Membership membership_;
  const Topology& topology_;
  const Topology& imitated_;
  const RankRoutes ways_;
  const std::vector<int> channels_;        // by peer
  const std::vector<Rank> local_ranks_;    // of this host
  uint64_t parent_ = 0;                    // the number of the communicator that this one is a part of; 0: none
  std::shared_ptr<ControlFamily> family_;  // of that communicator; null: none, or on one host
  std::vector<Rank> members_;              // the ranks' ranks in the family; empty: their own
  const HostSegmentNeeds needs_;
  const std::unique_ptr<HostSegment> segment_;
  CommConfig config_;
  TransportRoutes routes_;
  HostNetwork network_;
  std::optional<ShmFabric> fabric_;        // whose speeds are imitated
  std::shared_ptr<ArenaExchange> arenas_;  // null: collectives may not share memory freely
  std::vector<size_t> arena_places_;       // in an inherited one, by local rank; empty: it is not inherited
  ReachMap::Means means_;                  // that all ranks of the host have
  MeasuredCosts measured_costs_;
  bool has_measured_ = false;
  bool has_fences_ = false;  // asymmetric ones, on all ranks of the host
  std::unique_ptr<Monitor> monitor_;
  int64_t begun_ns_ = 0;
  Listing listing_;
  PublishedRank published_;
  Status dialled_;
  // messages_: null unless the config asks for them, or ranks have to forward. relay_: around one of its transports.
  std::unique_ptr<TransportSet> plans_, messages_;
  std::unique_ptr<Relay> relay_;
};

}  // namespace ccom
