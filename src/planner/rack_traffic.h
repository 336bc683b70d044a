// SPDX-License-Identifier: Apache-2.0
//
// Room-private: what rounds of messages take on a network of two levels, where racks' uplinks carry a part of what
// their hosts' cards do.
#pragma once

#include <span>
#include <vector>

#include "algorithms/level_rounds.h"
#include "topology/topology.h"

namespace ccom {

class RackTraffic {
 public:
  // `racks`: Topology::rack_numbers(). `groups`: whose members the rounds are between. All outlive it.
  RackTraffic(const Topology& topology, const std::vector<int>& racks, std::span<const std::vector<Rank>> groups);

  // By how much longer the rounds take than on a network where the hosts' cards alone count: in each the busiest rack's
  // uplinks may take longer. No rounds: everybody sends to everybody at once. `slack`: by how much longer something
  // else keeps the messages than the cards would.
  double stretch(std::span<const LevelRound> rounds, double slack = 1) const;
  // Whether any group has members of several racks.
  bool crosses() const;

 private:
  int rack_of(Rank rank) const { return racks_[static_cast<size_t>(topology_.ranks[static_cast<size_t>(rank)].host)]; }
  // How long the busiest rack's uplinks take by what the hosts' cards take, where every member sends as much.
  double uplinks_in(const LevelRound& round) const;
  double uplinks_to_all() const;

  const Topology& topology_;
  const std::vector<int>& racks_;
  std::span<const std::vector<Rank>> groups_;
  std::vector<double> taper_;    // by rack
  std::vector<double> members_;  // of all groups
};

}  // namespace ccom
