// SPDX-License-Identifier: Apache-2.0
//
// What joins this rank to the others: the host's shared segment, the monitor, and the sets of transports.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "bootstrap/rendezvous.h"
#include "engine/bound_plan.h"
#include "liveness/monitor.h"
#include "memory/shared_segment.h"
#include "messages/messages.h"
#include "node/shm_collectives.h"
#include "setup/config.h"
#include "setup/host_network.h"
#include "setup/membership.h"
#include "setup/node_join.h"
#include "setup/transport_set.h"
#include "topology/topology.h"
#include "transports/shm/factory.h"
#include "transports/transport.h"

namespace ccom {

// An all-gather that carries errors: if any rank has one, every rank returns it, naming that rank.
Result<std::vector<std::string>> exchange(Rendezvous& rendezvous, std::string_view phase, Result<std::string> mine,
                                          Deadline deadline);

// Belongs to one thread at a time, but for monitor(). Order of members is order of construction.
class CommSetup final : public ChannelSource {
 public:
  // Collective and blocking; every rank returns an error if one does. channels: of plans, by peer; a function of the
  // topology and the settings, so that both ends of a pair count alike.
  static Result<std::unique_ptr<CommSetup>> connect(const Membership& membership, const CommConfig& config,
                                                    const Topology& topology, std::vector<int> channels,
                                                    Rendezvous& rendezvous, Deadline deadline);
  ~CommSetup() override;

  Result<ChannelRef> open(Rank peer, int index) override;
  Monitor& monitor() { return *monitor_; }
  // Of plans.
  std::vector<Transport*> transports() const { return plans_->transports(); }
  std::string transport_names() const;  // "shm,tcp"
  uint64_t memory_bytes() const;
  // What a ShmCollectives over the ranks of this host needs; nothing if they do not share memory, or are not to use it as
  // they like (an imposed fabric, transports without shm).
  std::optional<NodeConfig> node_config() const;
  // What Messages needs; nothing unless the config asks for them.
  Result<std::optional<MessageRoutes>> message_routes();

 private:
  CommSetup(const Membership& membership, const CommConfig& config, const Topology& topology,
            std::vector<int> channels)
      : membership_(membership), config_(config), topology_(topology), channels_(std::move(channels)) {}

  // The phases of connect().
  Status choose_transports();
  Result<std::string> make_segment();
  bool can_use_efa() const;
  void settle_carrier(const std::vector<std::string>& offers);
  Result<std::string> share_segment(const std::vector<std::string>& offers, Deadline deadline);
  Status map_segment(const std::string& leader_path, const std::vector<nlohmann::json>& processes, Deadline deadline);
  Status make_monitor(Bytes board, bool initialise);
  Result<nlohmann::json> make_transports();
  Status dial(const std::vector<std::string>& addresses, Deadline deadline);
  Status check_agreement(const std::vector<std::string>& reports);
  bool has_node() const { return shares_memory_freely(config_, topology_, membership_.rank); }
  bool uses_shm() const { return routes_.uses("shm"); }
  int place() const;
  int shm_channels() const;

  bool shares_memory() const { return local_ranks_.size() > 1; }
  bool is_leader() const { return local_ranks_.front() == membership_.rank; }
  size_t board_bytes() const;
  size_t segment_bytes() const;
  size_t rings_offset() const { return board_bytes(); }
  size_t message_rings_offset() const;
  size_t node_offset() const;
  size_t fabric_offset() const;

  Membership membership_;
  CommConfig config_;
  const Topology& topology_;
  const std::vector<int> channels_;  // by peer
  std::vector<Rank> local_ranks_;
  size_t ring_bytes_ = 0, message_ring_bytes_ = 0;
  HostNetwork network_;
  std::vector<std::byte> private_board_;
  std::shared_ptr<SharedSegment> segment_;  // one mapping for all ranks of this process
  std::unique_ptr<SegmentServer> segment_server_;
  std::unique_ptr<NodeJoin> node_join_;
  NodeLayout node_layout_;
  std::optional<ShmFabric> fabric_;  // whose speeds are imitated
  ReachMap::Means means_;            // that all ranks have
  bool has_fences_ = false;          // asymmetric ones, on all ranks
  std::unique_ptr<Monitor> monitor_;
  TransportRoutes routes_;
  std::optional<TransportSet> plans_, messages_;
};

}  // namespace ccom
