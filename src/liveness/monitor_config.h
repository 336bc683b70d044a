// SPDX-License-Identifier: Apache-2.0
//
// What follows from a MonitorConfig: the control trees and this rank's connections in them, its board and its errors.
#pragma once

#include "liveness/board.h"
#include "liveness/monitor.h"
#include "liveness/state.h"

namespace ccom {

Status check_config(const MonitorConfig& config);
// On all hosts.
int count_ranks(const MonitorConfig& config);

// None on one host; one where no host has a second rank, else kTrees.
int tree_count(const std::vector<HostMembers>& hosts);
// The rank that owns the host's connections in that tree.
Rank tree_member(const std::vector<HostMembers>& hosts, int host, int tree);
// Whether this rank has neighbours in a tree.
bool is_tree_member(const MonitorConfig& config);
TreeConfig tree_config(const MonitorConfig& config, int tree);
// A neighbour of this rank in a control tree.
struct TreeEdge {
  int tree = 0;
  int host = -1;
  Rank rank = -1;
  bool is_parent = false;
};
std::vector<TreeEdge> tree_edges(const MonitorConfig& config);

// The rank's place among those of its host, and its slot on their board.
int slot_of(const MonitorConfig& config);
// The host's board in `memory`, see Monitor::create().
Result<Board> open_board(const MonitorConfig& config, Bytes memory, bool initialise);

// Null: there is no such rank.
const HostMembers* host_of(const std::vector<HostMembers>& hosts, Rank rank);
// The error of a rank that becomes everybody's: with that rank if it names none, and with the host of the first that it
// names. As it is if there is no memory for that.
Status attributed(const Status& error, const MonitorConfig& config) noexcept;
Status forked_error();
Status interruption(Rank self, const CallDescriptor& last_call);

}  // namespace ccom
