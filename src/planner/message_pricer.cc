// SPDX-License-Identifier: Apache-2.0
#include "planner/message_pricer.h"

#include <map>

#include "base/collective.h"
#include "planner/node_machine.h"

namespace ccom {
namespace {

// A message inside a host costs latency when it is waited for, and this share of it when it is only posted.
constexpr double kPostShare = 0.2;
// Of messages inside a host that go through system calls, processor time is the cost, and more ranks than cores share
// the cores.
constexpr double kSystemCallNs = 4000;
// A rank's system calls and copies keep this much network busy.
constexpr double kRankBytesPerSecond = 2e9;
// Flows that a wire has no need of take turns on it in tens of milliseconds, and a tile is done when its slowest flow
// is: the wire idles. Measured with 2 x 4 ranks at 1 Gbit/s.
constexpr double kSurplusFlows = 1.2;
// Each message of a host's ranks to another host, one after another: system calls, interrupts.
constexpr double kMessageNs = 2000;

}  // namespace

MessagePricer::MessagePricer(const Topology& topology, const Question& question, double flows)
    : topology_(topology), question_(question), flows_(flows) {
  // Topology::ranks_on_machine_of() of all hosts in one pass: clusters have thousands of ranks.
  std::vector<double> ranks(topology.hosts.size());
  std::map<std::string_view, double> on_machine;
  const auto machine_of = [&](size_t host) -> std::string_view {
    const Host& about = topology.hosts[host];
    return about.machine.empty() ? about.id : about.machine;
  };
  for (const Place& place : topology.ranks) {
    ++ranks[static_cast<size_t>(place.host)];
    ++on_machine[machine_of(static_cast<size_t>(place.host))];
  }
  for (size_t host = 0; host < ranks.size(); ++host) {
    const double crowding = on_machine[machine_of(host)] / topology.hosts[host].cpus;
    if (crowding > crowding_ || (crowding == crowding_ && ranks[host] > most_ranks_))
      most_crowded_ = static_cast<int>(host);
    most_ranks_ = std::max(most_ranks_, ranks[host]);
    crowding_ = std::max(crowding_, crowding);
  }
}

void MessagePricer::add(const Cost& cost, const LinkSpeed& speed, double sharing) {
  price_.cost += cost;
  price_.time_ns += (cost.steps + kPostShare * cost.posts) * speed.latency_ns +
                    cost.bytes * 1e9 / speed.bytes_per_second * sharing + reductions_ns(cost);
}

void MessagePricer::add_inside(const Cost& cost, double sent, double received) {
  const LinkSpeed& memory = topology_.memory;
  const double crowding = std::max(1.0, crowding_);
  const MessageCopies copies = copies_of(cost.bytes / std::max(cost.posts, 1.0));
  const double least_ns = 0.5e9 / memory.bytes_per_second;  // of either end
  const double latency_ns = std::max(memory.latency_ns * copies.latency, copies.turn_ns);
  double waits_ns = (cost.steps + kPostShare * cost.posts) * latency_ns;
  if (latency_ns >= kSystemCallNs / 2) waits_ns += cost.posts * kSystemCallNs * crowding;
  price_.cost += cost;
  add_time(price_.parts.inside_ns, waits_ns,
           crowding * (sent * std::max(copies.send_ns, least_ns) + received * std::max(copies.receive_ns, least_ns)) +
               reductions_ns(cost));
}

void MessagePricer::add_local(double bytes) {
  add_time(price_.parts.inside_ns, 0, bytes * copies_of(bytes).local_ns * std::max(1.0, crowding_));
}

void MessagePricer::add_across(const Cost& cost, double flows, double idle) {
  const LinkSpeed& wire = topology_.network;
  const bool has_surplus = flows > 1 && wire.bytes_per_second < flows * kRankBytesPerSecond;
  const double carried = std::min(wire.bytes_per_second, flows * kRankBytesPerSecond);
  price_.cost += cost;
  add_time(price_.parts.across_ns, cost.steps * wire.latency_ns + cost.posts * flows * kMessageNs,
           cost.bytes * flows * 1e9 / carried * std::max(idle, has_surplus ? kSurplusFlows : 1) + reductions_ns(cost));
}

MessageCopies MessagePricer::copies_of(double message_bytes) const {
  if (topology_.hosts[0].imposed) return {};
  const HostMachine host(topology_, most_crowded_);
  const double unit = static_cast<double>(question_.bytes) / largest_units(question_.collective, topology_.nranks());
  const double touched = unit * static_cast<double>(total_units(question_.collective, topology_.nranks()));
  return message_copies(host.machine, static_cast<int>(most_ranks_), touched * most_ranks_ / topology_.nranks(),
                        message_bytes);
}

}  // namespace ccom
