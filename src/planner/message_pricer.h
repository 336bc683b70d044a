// SPDX-License-Identifier: Apache-2.0
//
// Room-private: the time of messages inside hosts without an imposed fabric, and between hosts.
#pragma once

#include <algorithm>

#include "algorithms/copy_cost.h"
#include "planner/pricing.h"

namespace ccom {

// Sums up phases; knows the speeds.
class MessagePricer {
 public:
  // flows: that share a host's network; 0: as the algorithm and the hosts' ranks make them.
  MessagePricer(const Topology& topology, const Question& question, double flows);

  // A phase whose messages take `speed`, `sharing` of them at a time over one wire.
  void add(const Cost& cost, const LinkSpeed& speed, double sharing = 1);
  void round(int times) { price_.roundings += times; }

  // Messages between ranks of one host. A rank's core copies what it sends and what it receives; more ranks than cores
  // share the cores.
  void add_inside(const Cost& cost) { add_inside(cost, cost.bytes, cost.bytes); }
  void add_inside(const Cost& cost, double sent, double received);
  // What a rank copies from its input to its output.
  void add_local(double bytes);

  // Messages of `flows` ranks of a host at once through its network, where a pattern keeps a wire that much longer than
  // its bytes do.
  void add_across(const Cost& cost, double flows, double idle = 1);

  bool several_hosts() const { return topology_.hosts.size() > 1; }
  // Of the other ranks, those on the same host.
  double share_inside() const { return (most_ranks_ - 1) / std::max(topology_.nranks() - 1, 1); }
  double flows(bool is_one_by_one = false) const { return flows_ > 0 ? flows_ : is_one_by_one ? 1 : most_ranks_; }
  const Topology& topology() const { return topology_; }
  Price take() { return price_; }

 private:
  double reductions_ns(const Cost& cost) const {
    const double reductions = topology_.costs.reduce_bytes_per_second;  // of one rank with a core to itself
    return reductions > 0 ? cost.reduced * 1e9 / reductions * std::max(1.0, crowding_) : 0;
  }
  void add_time(double& part, double waits_ns, double moves_ns) {
    part += waits_ns + moves_ns;
    price_.parts.waits_ns += waits_ns;
    price_.time_ns += waits_ns + moves_ns;
  }
  // Through the memory of the host that has least of a core for each rank; by an imposed fabric links alone count.
  MessageCopies copies_of(double message_bytes) const;

  const Topology& topology_;
  const Question& question_;
  double flows_;
  double most_ranks_ = 1;
  double crowding_ = 0;
  int most_crowded_ = 0;
  Price price_;
};

}  // namespace ccom
