// SPDX-License-Identifier: Apache-2.0
//
// Room-private: what carries messages on a machine, and what a message and a byte take there: memory and network of
// plain hosts, ports, links and uplinks of imposed fabrics. All differences between them are constants of a Medium.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/copy_cost.h"
#include "algorithms/level_rounds.h"
#include "plan/shape.h"
#include "planner/machine_view.h"
#include "planner/node_machine.h"
#include "planner/planner.h"
#include "topology/wires.h"

namespace ccom {

struct Medium {
  enum Kind : uint8_t { kPorts, kLinks, kUplinks, kPosting, kKinds };  // NOLINT(readability-identifier-naming): indices
  Kind kind = kLinks;
  double latency_ns = 0;
  double wire_ns = 0;        // for each byte: of the wire
  double card_ns = 0;        // and of the host's card, if that is less: one flow may not fill it
  double send_ns = 0;        // of the sender's core
  double receive_ns = 0;     // of the receiver's core
  double post_ns = 0;        // to start a message; the rank starts others while this one is under way
  double message_ns = 0;     // of a rank's core for each message, with nothing beside it
  double chunk_wait_ns = 0;  // until a tree's next chunk can follow: cores that copy do one thing at a time
  double wire_post_ns = 0;   // that a message occupies the wire besides its bytes
  double sharing = 1;        // ranks that use a wire in turns, while others' messages are under way
  double idle = 1;           // how much longer than its bytes the pattern keeps the wire
  double flows_idle = 1;     // and flows that take turns on it, if that is longer
  double byte_ns() const { return wire_ns + send_ns + receive_ns; }
  double longer() const { return std::max(idle, flows_idle); }
};

class Mediums {
 public:
  // flows: that share a plain host's network; 0: as many as the pattern and the host's ranks make. All outlive it.
  Mediums(const Topology& topology, const MachineView& view, const Question& question, double flows);

  // Of messages of that length among a level's groups.
  Medium of(const Level& level, double message_bytes) const;
  // Between ranks of one device, or of a host without a fabric.
  Medium inside(double message_bytes) const;
  bool crosses_hosts(uint32_t wire) const { return wires_.is_rack(wire) || kind_of(wires_.name(wire)) == "uplink"; }
  // Over a wire, which a message may be one of several on.
  Medium of_wire(uint32_t wire, double message_bytes) const;
  // Of trees and of other messages that leave a host one by one.
  Medium of_edges(double message_bytes) const;
  Medium across(double flows, double idle = 1) const;
  // The same on a network of racks whose uplinks carry less: the mean over the rounds, or over messages from everybody
  // to everybody if there are none, of what takes longest in each, the hosts' cards or the busiest rack's uplinks.
  // `groups`: whose members the rounds are between.
  Medium in_racks(Medium medium, std::span<const std::vector<Rank>> groups, std::span<const LevelRound> rounds) const;
  // Between all ranks, in their order.
  Medium in_racks(Medium medium, std::span<const LevelRound> rounds) const;
  double flows(bool is_one_by_one) const { return flows_ > 0 ? flows_ : is_one_by_one ? 1 : view_.most_ranks; }
  bool is_stage() const { return flows_ > 0; }  // of a program: its blocks are in place
  // Of messages from a rank to all others, those that stay on its host, where they are priced apart from the rest.
  double share_inside() const;

  // Calls fn(which, wire) for all that a message between two ranks of a tree keeps busy: wires of a fabric; without one
  // the core of the parent, which has most of them, and the uplinks of racks.
  template <typename Fn>
  void for_busy(Rank parent, Rank child, bool down, const Medium& medium, Fn fn) const {
    path_.clear();
    if (view_.fabric != nullptr || view_.has_racks) {
      down ? wires_.path(parent, child, path_) : wires_.path(child, parent, path_);
    }
    if (view_.fabric == nullptr) {
      const double byte_ns = medium.wire_ns * medium.longer() + (down ? medium.send_ns : medium.receive_ns);
      fn(wires_.count() + static_cast<uint32_t>(parent), Wire{{medium.latency_ns, 1e9 / byte_ns}});
      std::erase_if(path_, [&](uint32_t wire) { return !wires_.is_rack(wire); });
    }
    // Other stages' trees beside this one use the same uplinks.
    const double shared_by = view_.fabric == nullptr ? std::max(flows_, 1.0) : 1;
    for (const uint32_t wire : path_) {
      const Wire& own = wires_[wire];
      fn(wire, Wire{{own.speed.latency_ns, own.speed.bytes_per_second / shared_by}, own.post_ns});
    }
  }
  // Every rank sends `each` bytes to all others of its group, and all groups are like this one: how long the busiest
  // kind of wire is busy, all of a kind alike.
  double busiest_ns(double each, const std::vector<Rank>& group) const;
  double wires_between(Rank from, Rank to) const;  // on the way of a message
  std::vector<Rank> all_ranks() const;
  size_t busy_count() const { return wires_.count() + static_cast<size_t>(view_.nranks); }

  double local_ns(double bytes) const;             // for a byte that a rank copies from its input to its output
  double reduce_ns() const { return reduce_ns_; }  // for a byte that a reduction reads
  // For each message of so much to reduce, besides its bytes.
  double reduction_ns(double reduced) const {
    return view_.fabric != nullptr && reduced > 0 ? view_.fabric->costs.reduce_ns : 0;
  }

  const Topology& topology() const { return topology_; }
  const MachineView& view() const { return view_; }
  const Wires& wires() const { return wires_; }

 private:
  const Place& place(Rank rank) const { return topology_.ranks[static_cast<size_t>(rank)]; }
  MessageCopies copies(double message_bytes) const;
  Medium of_fabric(Medium::Kind kind, const LinkSpeed& speed, double sharing = 1, double wire_post_ns = 0) const;
  // With what the fabric's ranks do for a message of that length.
  Medium handled(Medium medium, double message_bytes) const;
  void find_crowding(const Question& question);
  Medium uplink(const Level& level) const;
  Medium links(const Level& level) const;

  const Topology& topology_;
  const MachineView& view_;
  const Wires wires_;
  mutable std::vector<uint32_t> path_;
  double flows_ = 0;
  double reduce_ns_ = 0;
  std::vector<int> racks_;              // by host
  double crowding_ = 1;                 // of plain hosts: ranks on a core, where most are
  double touched_bytes_ = 0;            // of all buffers on the host with most ranks
  std::optional<HostMachine> crowded_;  // the plain host that has least of a core for each rank
};

}  // namespace ccom
