// SPDX-License-Identifier: Apache-2.0
#include "setup/emulation.h"

#include "base/log.h"
#include "topology/wires.h"

namespace ccom {

Status check_emulation(const CommConfig& config, const Topology& topology) {
  if (config.emulate_scale == 0) return {};
  if (topology.hosts.size() > 1) {
    return error(ErrorKey::CannotEmulate, "CCOM_EMULATE_SCALE imitates the fabric of one host; these ranks are on %zu",
                 topology.hosts.size())
        .with_cure("Start all ranks on one host, without CCOM_HOSTID, or unset CCOM_EMULATE_SCALE.");
  }
  if (!config.transports.empty() && config.transports.front() != "shm") {
    return error(ErrorKey::CannotEmulate,
                 "CCOM_EMULATE_SCALE paces what goes through transport shm, but %s comes first",
                 config.transports.front().c_str())
        .with_cure("Unset CCOM_TRANSPORT, or put shm first in it.");
  }
  return {};
}

Result<std::optional<Topology>> imitated_hosts(const Topology& topology) {
  const std::optional<Fabric>& imposed = topology.hosts[0].imposed;
  if (!imposed || !names_cluster(imposed->name)) return std::optional<Topology>();
  if (topology.hosts.size() > 1) {
    return error(ErrorKey::CannotEmulate, "CCOM_TOPOLOGY=%s imitates several hosts on one; these ranks are on %zu",
                 imposed->name.c_str(), topology.hosts.size())
        .with_cure("Start all ranks on one host, without CCOM_HOSTID, or name the fabric of each host alone.");
  }
  CCOM_TRY_ASSIGN(Topology imitated, make_topology(imposed->name));
  if (imitated.nranks() != topology.nranks()) {
    return error(ErrorKey::TopologyFile, "CCOM_TOPOLOGY=%s has %d ranks, but %d were started", imposed->name.c_str(),
                 imitated.nranks(), topology.nranks())
        .with_cure("Start as many ranks as the hosts named have, or name other hosts (4*trn2.48xlarge/1).");
  }
  return std::optional(std::move(imitated));
}

ShmFabric emulated_fabric(const Topology& topology, Rank rank, double scale) {
  const int host = topology.ranks[static_cast<size_t>(rank)].host;
  const Wires wires(topology);
  ShmFabric fabric;
  fabric.lines = wires.count();
  const Costs& costs = topology.hosts[static_cast<size_t>(host)].imposed->costs;
  fabric.post_ns = costs.post_ns / scale;
  if (costs.reduce_bytes_per_second > 0) fabric.reduce_ns_per_byte = 1e9 / (costs.reduce_bytes_per_second * scale);
  std::vector<uint32_t> path;
  for (Rank peer = 0; peer < topology.nranks(); ++peer) {
    path.clear();
    if (peer != rank && topology.linked(rank, peer)) wires.path(rank, peer, path);
    std::vector<ShmWire>& way = fabric.ways.emplace_back();
    for (const uint32_t index : path) {
      const Wire& wire = wires[index];
      way.push_back({.line = index,
                     .ns_per_byte = 1e9 / (wire.speed.bytes_per_second * scale),
                     .latency_ns = wire.speed.latency_ns / scale,
                     .post_ns = wire.post_ns / scale});
    }
  }
  return fabric;
}

void log_traffic(const Topology& topology, const SharedSegment& segment, const ShmFabric& fabric) {
  if (!log_enabled(LogLevel::Debug)) return;
  const Wires wires(topology);
  const std::vector<uint64_t> traffic = shm_wire_traffic(segment, fabric);
  for (uint32_t wire = 0; wire < traffic.size(); ++wire) {
    if (traffic[wire] == 0) continue;
    log(LogLevel::Debug, "emulated %s carried %llu bytes", wires.name(wire).c_str(),
        static_cast<unsigned long long>(traffic[wire]));
  }
}

}  // namespace ccom
