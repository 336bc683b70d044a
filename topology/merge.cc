// SPDX-License-Identifier: Apache-2.0
//
// Merges every rank's view of its host into the topology that all ranks agree on. A pure function of all views, so
// ranks with the same views compute the same topology.
#include <algorithm>
#include <map>
#include <set>

#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {
namespace {

// Default costs: they determine the planner's choices qualitatively. Measured values (--tune) are always better.
//
// Shared memory: a flag line written by one core and read by another takes 25 to 235 ns; a message takes a few of these
// plus the waiter's poll. One core copies about 8 GB/s between ranks once the data exceeds the caches.
constexpr double kMemoryLatencyNs = 500;
constexpr double kMemoryBytesPerSecond = 8e9;
// With more ranks than CPUs a peer must first be scheduled. A switch costs about 1.5 us (round trip by sched_yield: 1.7
// to 1.8 us), and there are ranks / cpus of them between a message and its reader.
constexpr double kContextSwitchNs = 1500;
// Between hosts: 15 us over EFA according to AWS, 30 us or more through the kernel's TCP; one value in between for
// both.
constexpr double kNetworkLatencyNs = 25000;
// 10 Gb/s if no network card reports its speed: an ordinary instance has that at least in bursts.
constexpr double kNetworkBytesPerSecond = 1.25e9;
// Bytes read by one rank's reductions, mostly from its cache, with a core of its own.
constexpr double kReduceBytesPerSecond = 25e9;

bool is_same_imposed(const Host& a, const Host& b) { return a.imposed == b.imposed; }

std::string imposed_name(const Host& host) { return host.imposed ? "\"" + host.imposed->name + "\"" : "none"; }

int devices_of(const Host& host) { return host.neuron ? host.neuron->devices : 0; }

// Adds a rank's view to a known host.
Status join_host(Host& host, const Host& view, Rank first, Rank rank) {
  if (!is_same_imposed(host, view)) {
    const std::string same_name = imposed_name(host) == imposed_name(view) ? " of different contents" : "";
    return error(ErrorKey::TopologyFile, "merge host %s: rank %d imposes topology %s, rank %d %s%s", host.name.c_str(),
                 first, imposed_name(host).c_str(), rank, imposed_name(view).c_str(), same_name.c_str())
        .with_peers({first, rank})
        .with_host(host.name)
        .with_cure("Set the same CCOM_TOPOLOGY on all ranks of a host.");
  }
  if (host.rack != view.rack) {
    return error(Code::ConfigError, "merge host %s: rank %d says that it is in rack \"%s\", rank %d in \"%s\"",
                 host.name.c_str(), first, host.rack.name.c_str(), rank, view.rack.name.c_str())
        .with_peers({first, rank})
        .with_host(host.name)
        .with_cure("Set the same CCOM_HOST_RACK on all ranks of a host.");
  }
  host.cpus = std::max(host.cpus, view.cpus);
  if (host.instance_type.empty()) host.instance_type = view.instance_type;
  if (devices_of(view) > devices_of(host)) {
    host.neuron = view.neuron;
    host.neuron_devices = view.neuron_devices;
    host.notes = view.notes;
  }
  return Status::ok();
}

// The CPUs that a host's ranks may use together: ranks bound to one core each have as many as there are ranks.
class UsableCpus {
 public:
  void add(const Locality& locality) {
    is_known_ = is_known_ && !locality.cpus.empty();
    is_limited_ = is_limited_ && locality.cpu_quota > 0;
    quota_ = std::max(quota_, locality.cpu_quota);
    cpus_.insert(locality.cpus.begin(), locality.cpus.end());
  }
  int count(int most_seen) const {
    if (!is_known_) return most_seen;
    const auto usable = static_cast<int>(cpus_.size());
    return is_limited_ ? std::min(usable, quota_) : usable;
  }

 private:
  bool is_known_ = true;
  bool is_limited_ = true;  // every rank; assumed to share a cgroup
  int quota_ = 0;
  std::set<int> cpus_;
};

Status check_room(const Topology& topology, int index) {
  const Host& host = topology.hosts[static_cast<size_t>(index)];
  const std::vector<Rank> members = topology.ranks_of(index);
  const int cores = host.imposed->devices * host.imposed->cores_per_device;
  if (static_cast<int>(members.size()) <= cores) return Status::ok();
  return error(ErrorKey::TopologyFile, "merge host %s: %zu ranks, but topology \"%s\" has %d cores (%d devices of %d)",
               host.name.c_str(), members.size(), host.imposed->name.c_str(), cores, host.imposed->devices,
               host.imposed->cores_per_device)
      .with_peers({members.begin() + cores, members.end()})
      .with_host(host.name)
      .with_cure("Start at most that many ranks on a host, or choose a larger CCOM_TOPOLOGY.");
}

// The slowest host determines the cost, because there is one value for all pairs.
LinkSpeed memory_cost(const Topology& topology) {
  std::vector<int> members(topology.hosts.size(), 0);
  for (const Place& place : topology.ranks) ++members[static_cast<size_t>(place.host)];
  LinkSpeed cost{.latency_ns = kMemoryLatencyNs, .bytes_per_second = kMemoryBytesPerSecond};
  for (size_t host = 0; host < members.size(); ++host) {
    const int cpus = std::max(1, topology.hosts[host].cpus);
    if (members[host] > cpus) cost.latency_ns = std::max(cost.latency_ns, kContextSwitchNs * members[host] / cpus);
  }
  return cost;
}

// Loopback TCP, measured with two ranks and a core each: 8 bytes 4 us, 1 MiB in both directions 250 us.
constexpr LinkSpeed kLoopback{.latency_ns = 3000, .bytes_per_second = 4e9};

// EFA cards are used together; of other cards only the fastest.
double bytes_per_second_of(const Host& host) {
  double efa = 0;
  double fastest = 0;
  for (const Nic& nic : host.nics) {
    if (nic.kind == "efa") {
      efa += nic.bytes_per_second;
    } else {
      fastest = std::max(fastest, nic.bytes_per_second);
    }
  }
  if (efa > 0) return efa;
  return fastest > 0 ? fastest : kNetworkBytesPerSecond;
}

LinkSpeed network_cost(const Topology& topology) {
  const auto slowest = std::ranges::min_element(topology.hosts, {}, bytes_per_second_of);
  return {.latency_ns = kNetworkLatencyNs, .bytes_per_second = bytes_per_second_of(*slowest)};
}

std::string origin_of(const Calibration* calibration) {
  if (calibration == nullptr) return "has none";
  return calibration->measured_on.empty() ? "has one" : "has one of " + calibration->measured_on;
}

bool is_same(const Calibration* one, const Calibration* other) {
  if (one == nullptr || other == nullptr) return one == other;
  return one == other || *one == *other;
}

Status check_calibrations(std::span<const BorrowedView> views) {
  std::vector<Rank> others;
  for (size_t rank = 1; rank < views.size(); ++rank) {
    if (!is_same(views[rank].calibration, views[0].calibration)) others.push_back(static_cast<Rank>(rank));
  }
  if (others.empty()) return Status::ok();
  return error(ErrorKey::TopologyFile,
               "merge topology: %zu of %zu ranks have another calibration than rank 0: rank %d %s, "
               "rank 0 %s",
               others.size(), views.size(), others[0],
               origin_of(views[static_cast<size_t>(others[0])].calibration).c_str(),
               origin_of(views[0].calibration).c_str())
      .with_peers(others)
      .with_cure("Give all ranks a CCOM_TUNING file with the same contents, or none.");
}

}  // namespace

Result<Topology> merge(const std::vector<RankView>& views) {
  std::vector<BorrowedView> borrowed;
  for (const RankView& view : views)
    borrowed.push_back({&view.host, &view.locality, view.calibration ? &*view.calibration : nullptr});
  return merge_borrowed(borrowed);
}

Result<Topology> merge_borrowed(std::span<const BorrowedView> views) {
  if (views.empty()) return error(Code::InvalidArgument, "merge topology: no ranks");
  CCOM_TRY(check_calibrations(views));
  Topology topology;
  std::map<std::string, int> index_of;  // by id
  std::vector<Rank> first;              // lowest rank per host
  std::vector<int> members;
  std::vector<UsableCpus> usable;
  for (const BorrowedView& view : views) {
    const Rank rank = topology.nranks();
    const auto [known, is_new] = index_of.emplace(view.host->id, static_cast<int>(topology.hosts.size()));
    const int index = known->second;
    if (is_new) {
      topology.hosts.push_back(*view.host);
      first.push_back(rank);
      members.push_back(0);
      usable.emplace_back();
    }
    Host& host = topology.hosts[static_cast<size_t>(index)];
    if (!is_new) CCOM_TRY(join_host(host, *view.host, first[static_cast<size_t>(index)], rank));
    const int local = members[static_cast<size_t>(index)]++;
    const int device = host.imposed ? local / std::max(1, host.imposed->cores_per_device) : -1;
    usable[static_cast<size_t>(index)].add(*view.locality);
    topology.ranks.push_back({.host = index,
                              .local = local,
                              .device = device,
                              .numa_node = view.locality->numa_node,
                              .cache_group = view.locality->cache_group});
  }
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
    int& cpus = topology.hosts[static_cast<size_t>(host)].cpus;
    cpus = usable[static_cast<size_t>(host)].count(cpus);
    if (topology.hosts[static_cast<size_t>(host)].imposed) CCOM_TRY(check_room(topology, host));
  }
  set_default_speeds(topology);
  if (views[0].calibration) calibrate(topology, *views[0].calibration);
  return topology;
}

void calibrate(Topology& topology, const Calibration& measured) {
  topology.memory = measured.memory.value_or(topology.memory);
  topology.network = measured.network.value_or(topology.network);
  topology.costs.post_ns = measured.post_ns.value_or(topology.costs.post_ns);
  topology.costs.reduce_bytes_per_second =
      measured.reduce_bytes_per_second.value_or(topology.costs.reduce_bytes_per_second);
  topology.memory_costs = measured.memory_costs.value_or(topology.memory_costs);
  topology.network_costs = measured.network_costs.value_or(topology.network_costs);
}

void set_default_speeds(Topology& topology) {
  topology.memory = memory_cost(topology);
  topology.network = network_cost(topology);
  topology.costs = {.post_ns = 0, .reduce_bytes_per_second = kReduceBytesPerSecond};
}

Topology without_shared_memory(Topology topology) {
  topology.memory = kLoopback;
  return topology;
}

Topology part_of(const Topology& topology, std::span<const Rank> members) {
  Topology part = topology;
  part.hosts.clear();
  part.ranks.clear();
  std::map<int, int> index_of;  // of a host in the part
  std::vector<int> ranks;       // of a host of the part
  for (const Rank member : members) {
    Place place = topology.ranks[static_cast<size_t>(member)];
    const auto [known, is_new] = index_of.emplace(place.host, static_cast<int>(part.hosts.size()));
    if (is_new) {
      part.hosts.push_back(topology.hosts[static_cast<size_t>(place.host)]);
      ranks.push_back(0);
    }
    place.host = known->second;
    place.local = ranks[static_cast<size_t>(place.host)]++;
    part.ranks.push_back(place);
  }
  // Hosts of one machine count its CPUs together.
  for (const auto& [before, now] : index_of) {
    int& cpus = part.hosts[static_cast<size_t>(now)].cpus;
    cpus = std::max(1, cpus * part.ranks_on_machine_of(now) / topology.ranks_on_machine_of(before));
  }
  return part;
}

}  // namespace ccom
