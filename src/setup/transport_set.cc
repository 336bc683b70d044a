// SPDX-License-Identifier: Apache-2.0
#include "setup/transport_set.h"

#include <algorithm>

#include "memory/process_memory.h"
#include "setup/exchanges.pb.h"
#include "transports/ofi/factory.h"
#include "transports/shm/factory.h"
#include "transports/tcp/factory.h"

namespace ccom {

Status TransportSet::open(const CommConfig& config, const ShmRegion& shm, const HostNetwork& network, bool on_use) {
  for (const std::string& name : routes_.names) {
    std::unique_ptr<Transport> transport;
    if (name == "shm") {
      CCOM_TRY_ASSIGN(transport, make_shm_transport({membership_.rank, shm.local_ranks, shm.segment, shm.offset_bytes,
                                                     shm.channels, shm.ring_bytes, shm.fabric}));
    } else if (name == "tcp") {
      const tcp::TcpConfig tcp{.rank = membership_.rank,
                               .communicator = membership_.communicator,
                               .key = membership_.secret.derive("ccom tcp"),
                               .bind_addresses = network.rails,
                               .streams = network.tcp_streams,
                               .crc = config.crc,
                               .local_ranks = shm.local_ranks,
                               .tls = config.tls,
                               .ports = config.ports,
                               .on_use = on_use,
                               .silence = std::chrono::milliseconds(std::max<int64_t>(2 * config.dead_ms, 3000))};
      CCOM_TRY_ASSIGN(transport, tcp::make_tcp_transport(tcp));
    } else {
      if (config.tls) {
        return error(Code::ConfigError, "CCOM_TLS=1: transport ofi cannot encrypt")
            .with_cure("set CCOM_TRANSPORT=shm,tcp, or CCOM_TLS=0 on a network that nobody else can listen to");
      }
      const auto peers = std::ranges::count(routes_.of, static_cast<int>(transports_.size()));
      CCOM_TRY_ASSIGN(transport,
                      ofi::make_ofi_transport(
                          {.rank = membership_.rank,
                           .communicator = membership_.communicator,
                           .key = membership_.secret.derive("ccom ofi"),
                           .provider = config.ofi_provider,
                           .bind_address = config.ofi_rails.empty() ? network.address : config.ofi_rails.front(),
                           .peers = static_cast<int>(peers),
                           .checksum = config.crc,
                           .rails = config.ofi_rails,
                           .arena = process_arena()}));
    }
    transports_.push_back(std::move(transport));
  }
  return {};
}

wire::TransportAddresses TransportSet::addresses() const {
  wire::TransportAddresses addresses;
  for (size_t t = 0; t < transports_.size(); ++t) {
    wire::TransportAddress& own = *addresses.add_addresses();
    own.set_transport(routes_.names[t]);
    own.set_address(transports_[t]->address());
  }
  return addresses;
}

Status TransportSet::connect(const std::vector<const wire::TransportAddresses*>& theirs, const WaitLimit& limit) {
  for (size_t t = 0; t < transports_.size(); ++t) {
    std::vector<Peer> peers;
    for (Rank peer = 0; peer < membership_.nranks; ++peer) {
      if (transport_of(peer) != static_cast<int>(t)) continue;
      const auto& offered = theirs[static_cast<size_t>(peer)]->addresses();
      const auto found = std::ranges::find(offered, routes_.names[t], &wire::TransportAddress::transport);
      if (found == offered.end()) {
        return error(Code::InternalError, "rank %d offers no %s address", peer, routes_.names[t].c_str())
            .with_peers({peer});
      }
      peers.push_back({peer, found->address(), channels_[static_cast<size_t>(peer)]});
    }
    CCOM_TRY(transports_[t]->connect(peers, limit));
  }
  CCOM_TRY_ASSIGN(care_, TransportCare::start(transports()));
  return {};
}

Result<Channel*> TransportSet::channel(Rank peer, int index) {
  return transports_[static_cast<size_t>(transport_of(peer))]->channel(peer, index);
}

std::vector<Transport*> TransportSet::transports() const {
  std::vector<Transport*> all;
  for (const auto& transport : transports_) all.push_back(transport.get());
  return all;
}

uint64_t TransportSet::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& transport : transports_) bytes += transport->memory_bytes();
  return bytes;
}

}  // namespace ccom
