// SPDX-License-Identifier: Apache-2.0
#include "planner/bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "topology/wires.h"

namespace ccom {
namespace {

// Bytes that one of `parts` equal parts of the ranks must send to, or receive from, the others.
double crossing(const Question& question, double parts) {
  const auto n = static_cast<double>(question.bytes);
  const double others = (parts - 1) / parts;
  switch (question.collective) {
    case Collective::AllReduce: return 2 * n * others;
    case Collective::ReduceScatter:
    case Collective::AllGather: return n * others;
    case Collective::Broadcast:
    case Collective::Reduce: return parts > 1 ? n : 0;
    case Collective::Gather:
    case Collective::Scatter: return n * others;  // at the root
    default: return 0;
  }
}

// Out of each device, over links and its share of the uplinks: of the weakest one, and on average.
std::pair<double, double> device_bandwidth(const Fabric& fabric, bool several_hosts) {
  std::vector<double> out(static_cast<size_t>(fabric.devices));
  for (const Link& link : fabric.links) {
    if (link.from < fabric.devices) out[static_cast<size_t>(link.from)] += link.speed.bytes_per_second;
  }
  for (const Uplink& uplink : fabric.uplinks) {
    for (const int device : uplink.devices) {
      if (several_hosts) out[static_cast<size_t>(device)] += uplink.speed.bytes_per_second;
    }
  }
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  return {*std::ranges::min_element(out), sum / fabric.devices};
}

// The longest that any rack's uplinks are busy with what must pass them. An allreduce takes every sum out of a rack and
// into it, and all racks together 2 (racks - 1) of them; a gather goes to the root's.
double longest_rack_ns(const Topology& topology, const Question& question) {
  const std::vector<int> racks = topology.rack_numbers();
  const std::vector<RackUplinks> uplinks = topology.rack_uplinks();
  std::vector<double> ranks(uplinks.size());
  for (const Place& place : topology.ranks) {
    const int rack = racks[static_cast<size_t>(place.host)];
    if (rack >= 0) ++ranks[static_cast<size_t>(rack)];
  }
  const bool is_gather = question.collective == Collective::Gather || question.collective == Collective::Scatter;
  const int of_root =
      question.root < 0 ? -1 : racks[static_cast<size_t>(topology.ranks[static_cast<size_t>(question.root)].host)];
  double longest_ns = 0, all = 0;
  const bool has_all = std::ranges::find(racks, -1) == racks.end();
  for (size_t rack = 0; rack < uplinks.size(); ++rack) {
    const double inside = ranks[rack] / topology.nranks();
    const double bytes_per_second = uplinks[rack].speed.bytes_per_second;
    all += bytes_per_second;
    if (inside == 1 || (is_gather && static_cast<int>(rack) != of_root)) continue;
    double bytes = crossing(question, 1 / inside);
    if (question.collective == Collective::AllReduce) bytes = static_cast<double>(question.bytes);
    if (question.collective == Collective::AllToAll)
      bytes = static_cast<double>(question.bytes) * ranks[rack] * (1 - inside);
    longest_ns = std::max(longest_ns, bytes * 1e9 / bytes_per_second);
  }
  if (question.collective == Collective::AllReduce && has_all && uplinks.size() > 1) {
    const double sums = 2 * (static_cast<double>(uplinks.size()) - 1) * static_cast<double>(question.bytes);
    longest_ns = std::max(longest_ns, sums * 1e9 / all);
  }
  return longest_ns;
}

// Of an alltoall: how long the links of a dimension of a torus are busy with what the two halves of its rings have for
// each other, whatever the ranks of other hosts do; hosts of equally many ranks.
double bisection_ns(const Topology& topology, const Fabric& fabric, const Question& question, size_t dimension) {
  const double size = fabric.dims[dimension];
  const double half = std::floor(size / 2);
  double capacity = 0;  // from the first half of the coordinates to the others
  const auto coordinate = [&](int device) {
    int stride = 1;
    for (size_t d = dimension + 1; d < fabric.dims.size(); ++d) stride *= fabric.dims[d];
    return device / stride % fabric.dims[dimension];
  };
  for (const Link& link : fabric.links) {
    if (coordinate(link.from) < half && coordinate(link.to) >= half) capacity += link.speed.bytes_per_second;
  }
  const double ranks = static_cast<double>(topology.ranks_of(0).size());
  const double pairs = (ranks * half / size) * (ranks * (size - half) / size);
  return static_cast<double>(question.bytes) / topology.nranks() * pairs * 1e9 / capacity;
}

// From the first rank to the one that is farthest: all machines here look alike from everywhere.
double longest_way(const Topology& topology) {
  const Wires wires(topology);
  double longest = 0;
  for (Rank rank = 1; rank < topology.nranks(); ++rank) longest = std::max(longest, wires.latency_ns(0, rank));
  return longest;
}

// Of an alltoall: out of the host that sends most.
double out_of_hosts(const Topology& topology, const Question& question) {
  double most = 0;
  for (int host = 0; host < static_cast<int>(topology.hosts.size()); ++host) {
    const auto ranks = static_cast<double>(topology.ranks_of(host).size());
    most = std::max(most, ranks * (topology.nranks() - ranks) / topology.nranks());
  }
  return most * static_cast<double>(question.bytes);
}

void raise(Bound& bound, double ns, const char* cut) {
  if (ns <= bound.bandwidth_ns) return;
  bound.bandwidth_ns = ns;
  bound.narrowest = cut;
}

void raise(Bound& bound, double bytes, double bytes_per_second, const char* cut) {
  raise(bound, bytes * 1e9 / bytes_per_second, cut);
}

// Out of a device, and between the halves of the torus where no others help: of one host.
void raise_exchange(Bound& bound, const Topology& topology, const Fabric& fabric, const Question& question,
                    double weakest) {
  const double devices = fabric.devices * static_cast<double>(topology.hosts.size());
  const double cores = topology.nranks() / devices;
  raise(bound, cores * static_cast<double>(question.bytes) * (1 - cores / topology.nranks()), weakest,
        "devices' links");
  if (topology.hosts.size() > 1) return;
  const bool is_torus = fabric.shape == Fabric::Shape::Torus || fabric.shape == Fabric::Shape::Ring;
  const bool is_full = topology.nranks() % fabric.devices == 0 && topology.nranks() >= fabric.devices;
  for (size_t d = 0; is_torus && is_full && d < fabric.dims.size(); ++d) {
    if (fabric.dims[d] < 2) continue;
    const double ns = bisection_ns(topology, fabric, question, d);
    raise(bound, ns, 1e9, "the bisection");
  }
}

}  // namespace

Bound lower_bound(const Topology& topology, const Question& question, bool uses_memory) {
  Bound bound;
  if (topology.nranks() < 2 || (uses_memory && topology.hosts.size() < 2)) return bound;
  const auto hosts = static_cast<double>(topology.hosts.size());
  const auto& imposed = topology.hosts[0].imposed;
  bound.latency_ns = longest_way(topology);
  const bool exchanges = question.collective == Collective::AllToAll;
  if (hosts > 1) {
    raise(bound, exchanges ? out_of_hosts(topology, question) : crossing(question, hosts),
          topology.host_bytes_per_second(0), "hosts' uplinks");
    raise(bound, longest_rack_ns(topology, question), "racks' uplinks");
  }
  if (uses_memory) return bound;
  if (!imposed) {
    raise(bound, crossing(question, topology.nranks()), topology.memory.bytes_per_second, "memory");
  } else if (imposed->devices > 1) {
    // An allreduce moves 2 (p - 1) n bytes in all; a single device must give and get n. The others give or get all of
    // theirs over their own links.
    const auto [weakest, mean] = device_bandwidth(*imposed, hosts > 1);
    const bool reduces_to_all = question.collective == Collective::AllReduce;
    raise(bound, crossing(question, hosts * imposed->devices), reduces_to_all ? mean : weakest, "devices' links");
    if (reduces_to_all) raise(bound, static_cast<double>(question.bytes), weakest, "the weakest device's links");
    if (exchanges) raise_exchange(bound, topology, *imposed, question, weakest);
  } else {
    raise(bound, crossing(question, topology.nranks()), imposed->inside_device.bytes_per_second, "memory");
  }
  return bound;
}

}  // namespace ccom
