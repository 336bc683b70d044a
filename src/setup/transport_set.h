// SPDX-License-Identifier: Apache-2.0
//
// A way to every peer: one transport of each kind that is needed, and which of them leads to whom. A communicator has
// one set for its plans and, if it carries messages, another one, so that neither ever waits for the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/wait_limit.h"
#include "memory/shared_segment.h"
#include "setup/config.h"
#include "setup/host_network.h"
#include "setup/membership.h"
#include "setup/transport_care.h"
#include "setup/transport_routes.h"
#include "transports/transport.h"

namespace ccom {

struct ShmFabric;
namespace wire {
class TransportAddresses;
}

// Belongs to one thread. The phases in this order: open, connect.
class TransportSet {
 public:
  // Where the rings of shm lie.
  struct ShmRegion {
    std::vector<Rank> local_ranks;
    SharedSegment* segment = nullptr;  // outlives the set
    size_t offset_bytes = 0;
    size_t ring_bytes = 0;
    int channels = 1;
    const ShmFabric* fabric = nullptr;  // to imitate the speeds of, if any
  };
  // membership: with a secret that no other set of the communicator has. channels: by peer.
  TransportSet(Membership membership, TransportRoutes routes, std::vector<int> channels)
      : membership_(std::move(membership)), routes_(std::move(routes)), channels_(std::move(channels)) {}

  // on_use: tcp connects a channel when it is first asked for, not in connect(). The same on all ranks.
  Status open(const CommConfig& config, const ShmRegion& shm, const HostNetwork& network, bool on_use);
  // What the peers need, by name.
  wire::TransportAddresses addresses() const;
  // theirs: by rank, what addresses() gave there. Blocking.
  Status connect(const std::vector<const wire::TransportAddresses*>& theirs, const WaitLimit& limit);

  // -1: none leads there.
  int transport_of(Rank peer) const { return routes_.of[static_cast<size_t>(peer)]; }
  Result<Channel*> channel(Rank peer, int index);
  std::vector<Transport*> transports() const;
  uint64_t memory_bytes() const;

 private:
  const Membership membership_;
  const TransportRoutes routes_;
  const std::vector<int> channels_;
  std::vector<std::unique_ptr<Transport>> transports_;  // as routes_.names
  std::unique_ptr<TransportCare> care_;
};

}  // namespace ccom
