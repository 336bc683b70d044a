// SPDX-License-Identifier: Apache-2.0
#include "planner/mediums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/collective.h"
#include "planner/rack_traffic.h"

namespace ccom {
namespace {

// ---- Plain hosts ----
// A message inside a host costs latency when it is waited for, and this share of it when it is only posted.
constexpr double kPostShare = 0.2;
// Of messages inside a host that go through system calls, processor time is the cost, and more ranks than cores share
// the cores.
constexpr double kSystemCallNs = 4000;
// Flows that a wire has no need of take turns on it in tens of milliseconds, and a tile is done when its slowest flow
// is: the wire idles. Measured with 2 x 4 ranks at 1 Gbit/s.
constexpr double kSurplusFlows = 1.2;

// How much longer than its bytes a pattern keeps the network: in a ring every rank always sends to the same peer; where
// peers change from step to step the wire idles in between. Measured with TCP, 4 hosts at 1 Gbit/s, 16 and 64 MiB:
// ring 1.00 of the wire, two-shot 0.91 to 0.97, circulant 0.86 to 0.90.
double network_idle(const Level& level) {
  if (level.groups[0].size() == 2) return 1;
  const bool changes_peers = level.pattern == Pattern::Circulant || level.pattern == Pattern::Bine;
  return changes_peers ? 1.13 : level.pattern == Pattern::Direct ? 1.06 : 1;
}

// ---- Fabrics ----
// Of circulant exchanges, blocks that wrap around leave as two messages; the second of one round and the first of the
// next collide at their receiver. Fitted to simulations of 13 to 640 members: 1.07 at 16, 1.36 at 640.
double fabric_idle(const Level& level) {
  const double rounds = std::log2(static_cast<double>(level.groups[0].size()));
  return level.pattern == Pattern::Circulant ? 1 + 0.0042 * rounds * rounds : 1;
}

}  // namespace

Mediums::Mediums(const Topology& topology, const MachineView& view, const Question& question, double flows)
    : topology_(topology), view_(view), wires_(topology), flows_(flows), racks_(topology.rack_numbers()) {
  const double reductions = (view.fabric != nullptr ? view.fabric->costs : topology.costs).reduce_bytes_per_second;
  if (view.fabric == nullptr) find_crowding(question);
  if (reductions > 0) reduce_ns_ = 1e9 / reductions * crowding_;
}

void Mediums::find_crowding(const Question& question) {
  // Topology::ranks_on_machine_of() of all hosts in one pass: clusters have thousands of ranks.
  std::map<std::string_view, double> on_machine;
  const auto machine_of = [&](size_t host) -> std::string_view {
    const Host& about = topology_.hosts[host];
    return about.machine.empty() ? about.id : about.machine;
  };
  for (const Place& place : topology_.ranks) ++on_machine[machine_of(static_cast<size_t>(place.host))];
  size_t crowded = 0;
  std::pair<double, size_t> most;
  for (size_t host = 0; host < topology_.hosts.size(); ++host) {
    const std::pair here(on_machine[machine_of(host)] / topology_.hosts[host].cpus, view_.ranks[host][0].size());
    if (here > most) crowded = host;
    most = std::max(most, here);
  }
  crowding_ = std::max(1.0, most.first);
  crowded_.emplace(topology_, static_cast<int>(crowded));
  const double unit = static_cast<double>(question.bytes) / largest_units(question.collective, view_.nranks);
  touched_bytes_ =
      unit * static_cast<double>(total_units(question.collective, view_.nranks)) * view_.most_ranks / view_.nranks;
}

double Mediums::share_inside() const {
  return view_.fabric != nullptr ? 0 : (view_.most_ranks - 1.0) / std::max(view_.nranks - 1, 1);
}

// By an imposed fabric links alone count.
MessageCopies Mediums::copies(double message_bytes) const {
  return crowded_ ? message_copies(crowded_->machine, view_.most_ranks, touched_bytes_, message_bytes)
                  : MessageCopies{};
}

double Mediums::local_ns(double bytes) const { return copies(bytes).local_ns * crowding_; }

Medium Mediums::of_fabric(Medium::Kind kind, const LinkSpeed& speed, double sharing, double wire_post_ns) const {
  return {.kind = kind,
          .latency_ns = speed.latency_ns,
          .wire_ns = 1e9 / speed.bytes_per_second,
          .card_ns = 1e9 / speed.bytes_per_second,
          .post_ns = view_.fabric->costs.post_ns,
          .wire_post_ns = wire_post_ns,
          .sharing = sharing};
}

Medium Mediums::handled(Medium medium, double message_bytes) const {
  const Costs& costs = view_.fabric->costs;
  medium.message_ns += costs.receive_ns;
  if (costs.is_rendezvous(message_bytes)) {
    medium.latency_ns *= 3;  // there, back, and with the bytes
    medium.post_ns += costs.rendezvous_ns;
  } else if (costs.copy_bytes_per_second > 0) {
    medium.message_ns += 2 * message_bytes * 1e9 / costs.copy_bytes_per_second;
  }
  return medium;
}

// Without a fabric a rank's core copies what it sends and what it receives; more ranks than cores share the cores.
Medium Mediums::inside(double message_bytes) const {
  if (view_.fabric != nullptr) return handled(of_fabric(Medium::kPorts, view_.fabric->inside_device), message_bytes);
  const MessageCopies each = copies(message_bytes);
  const double least_ns = 0.5e9 / topology_.memory.bytes_per_second;  // of either end
  const double latency_ns = std::max(topology_.memory.latency_ns * each.latency, each.turn_ns);
  const double calls_ns = latency_ns >= kSystemCallNs / 2 ? kSystemCallNs * crowding_ : 0;
  return {.kind = Medium::kPorts,
          .latency_ns = latency_ns,
          .send_ns = crowding_ * std::max(each.send_ns, least_ns),
          .receive_ns = crowding_ * std::max(each.receive_ns, least_ns),
          .message_ns = kPostShare * latency_ns + calls_ns,
          .chunk_wait_ns = latency_ns};
}

// Each flow's share of the network.
Medium Mediums::across(double flows, double idle) const {
  const double share_ns = flows * 1e9 / topology_.network.bytes_per_second;
  const bool has_surplus = flows > 1 && share_ns > topology_.network_costs.flow_byte_ns;
  return {.kind = Medium::kUplinks,
          .latency_ns = topology_.network.latency_ns,
          .wire_ns = std::max(share_ns, topology_.network_costs.flow_byte_ns),
          .card_ns = share_ns,
          .message_ns = flows * topology_.network_costs.message_ns,
          .chunk_wait_ns = topology_.network.latency_ns,
          .idle = idle,
          .flows_idle = has_surplus ? kSurplusFlows : 1};
}

Medium Mediums::in_racks(Medium medium, std::span<const std::vector<Rank>> groups,
                         std::span<const LevelRound> rounds) const {
  if (!view_.has_racks) return medium;
  const RackTraffic traffic(topology_, racks_, groups);
  // Uplinks are compared with cards that all ranks of a host share; fewer flows of it each have more of them.
  const double flows = medium.card_ns * topology_.network.bytes_per_second * 1e-9;
  const double shared_by = view_.fabric != nullptr ? 1 : flows / (is_stage() ? flows_ : view_.most_ranks);
  const double stretch = traffic.stretch(rounds, shared_by * medium.wire_ns / medium.card_ns);
  medium.wire_ns *= stretch;
  // Where the link between sites is the narrow one flows do not idle on the card before it, and the link itself carries
  // 8 flows as fast as 2 (docs/topology.md).
  if (stretch > 1 && topology_.bytes_between_racks() > 0) medium.flows_idle = 1;
  if (traffic.crosses()) medium.latency_ns += topology_.latency_between_racks_ns();
  return medium;
}

Medium Mediums::in_racks(Medium medium, std::span<const LevelRound> rounds) const {
  if (!view_.has_racks) return medium;
  const std::vector<Rank> all = all_ranks();
  return in_racks(medium, {&all, 1}, rounds);
}

Medium Mediums::uplink(const Level& level) const {
  // A ring in rank order leaves a host once.
  if (view_.fabric == nullptr) return across(flows(level.pattern == Pattern::Ring), network_idle(level));
  const int device = place(level.groups[0].front()).device;
  for (const Uplink& uplink : view_.fabric->uplinks) {
    if (!std::ranges::binary_search(uplink.devices, device)) continue;
    const auto devices = std::ranges::count_if(uplink.devices, [&](int d) { return d < view_.devices; });
    return of_fabric(Medium::kUplinks, uplink.speed,
                     std::min(static_cast<double>(devices) * view_.cores, static_cast<double>(view_.most_ranks)),
                     uplink.post_ns);
  }
  return of_fabric(Medium::kUplinks, topology_.network, view_.most_ranks);
}

Medium Mediums::links(const Level& level) const {
  const std::vector<Rank>& group = level.groups[0];
  const Place& first = place(group.front());
  LinkSpeed slowest{0, 1e300};
  for (const Link& link : view_.fabric->links) {
    slowest.latency_ns = std::max(slowest.latency_ns, link.speed.latency_ns);
    slowest.bytes_per_second = std::min(slowest.bytes_per_second, link.speed.bytes_per_second);
  }
  const auto beside = std::ranges::count_if(
      group, [&](Rank r) { return place(r).host == first.host && place(r).device == first.device; });
  return of_fabric(Medium::kLinks, slowest,
                   std::max(static_cast<double>(level.groups.size()) / view_.hosts, static_cast<double>(beside)));
}

Medium Mediums::of(const Level& level, double message_bytes) const {
  const std::vector<Rank>& group = level.groups[0];
  const Place &first = place(group.front()), &last = place(group.back());
  const bool crosses = std::ranges::any_of(group, [&](Rank rank) { return place(rank).host != first.host; });
  const bool is_inside = !crosses && first.device == last.device;
  const auto members = static_cast<uint32_t>(group.size());
  const auto between = [&] { return in_racks(uplink(level), level.groups, level_rounds(level, members, 1)); };
  if (view_.fabric == nullptr) return crosses ? between() : is_inside ? inside(message_bytes) : links(level);
  Medium medium = crosses     ? between()
                  : is_inside ? of_fabric(Medium::kPorts, view_.fabric->inside_device)
                              : links(level);
  medium.idle = fabric_idle(level);
  if (level.pattern != Pattern::Ring) return handled(medium, message_bytes);
  // A ring's chunks pass all its edges in turn: what counts is their mean latency, and the slowest one's bandwidth.
  medium.latency_ns = 0;
  for (size_t i = 0; i < group.size(); ++i) {
    path_.clear();
    wires_.path(group[i], group[(i + 1) % group.size()], path_);
    for (const uint32_t wire : path_) {
      medium.latency_ns += wires_[wire].speed.latency_ns / static_cast<double>(group.size());
      medium.wire_ns = std::max(medium.wire_ns, 1e9 / wires_[wire].speed.bytes_per_second);
    }
  }
  if (level.groups.size() == 1) medium.sharing = 1;  // over all ranks: a host has one edge out
  return handled(medium, message_bytes);
}

Medium Mediums::of_wire(uint32_t wire, double message_bytes) const {
  const bool crosses = crosses_hosts(wire);
  if (wires_.is_rack(wire) && view_.fabric == nullptr) {
    Medium medium = across(flows(true));
    medium.wire_ns = std::max(medium.wire_ns, 1e9 / wires_[wire].speed.bytes_per_second);
    return medium;
  }
  if (view_.fabric == nullptr) return crosses ? across(flows(true)) : inside(message_bytes);
  return handled(of_fabric(crosses ? Medium::kUplinks : Medium::kLinks, wires_[wire].speed, 1, wires_[wire].post_ns),
                 message_bytes);
}

Medium Mediums::of_edges(double message_bytes) const {
  if (view_.fabric != nullptr) {
    return handled({.post_ns = view_.fabric->costs.post_ns}, message_bytes);
  }
  return view_.hosts > 1 ? across(flows(true)) : inside(message_bytes);
}

std::vector<Rank> Mediums::all_ranks() const {
  std::vector<Rank> all(static_cast<size_t>(view_.nranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double Mediums::wires_between(Rank from, Rank to) const {
  path_.clear();
  if (from != to) wires_.path(from, to, path_);
  return static_cast<double>(path_.size());
}

double Mediums::busiest_ns(double each, const std::vector<Rank>& group) const {
  using Speed = std::pair<double, double>;
  std::map<Speed, double> busy, there;
  const auto speed_of = [&](uint32_t wire) {
    return Speed(wires_[wire].speed.bytes_per_second, wires_[wire].speed.latency_ns);
  };
  for (size_t i = 1; i < group.size(); ++i) {
    path_.clear();
    wires_.path(group[0], group[i], path_);
    for (const uint32_t wire : path_) {
      busy[speed_of(wire)] += std::max(each * 1e9 / wires_[wire].speed.bytes_per_second, wires_[wire].post_ns);
    }
  }
  for (uint32_t wire = 0; wire < wires_.count(); ++wire) ++there[speed_of(wire)];
  double busiest = 0;
  for (const auto& [speed, ns] : busy) busiest = std::max(busiest, ns * view_.nranks / there[speed]);
  return busiest;
}

}  // namespace ccom
