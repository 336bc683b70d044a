// SPDX-License-Identifier: Apache-2.0
#include "liveness/monitor_config.h"

#include <algorithm>
#include <new>

namespace ccom {

Rank tree_member(const std::vector<HostMembers>& hosts, int host, int tree) {
  const std::vector<Rank>& ranks = hosts[static_cast<size_t>(host)].ranks;
  return ranks[std::min(static_cast<size_t>(tree_member_index(host, tree)), ranks.size() - 1)];
}

int tree_count(const std::vector<HostMembers>& hosts) {
  if (hosts.size() == 1) return 0;
  return std::ranges::any_of(hosts, [](const HostMembers& host) { return host.ranks.size() > 1; }) ? kTrees : 1;
}

int count_ranks(const MonitorConfig& config) {
  size_t ranks = 0;
  for (const HostMembers& host : config.hosts) ranks += host.ranks.size();
  return static_cast<int>(ranks);
}

bool is_tree_member(const MonitorConfig& config) {
  for (int tree = 0; tree < tree_count(config.hosts); ++tree)
    if (tree_member(config.hosts, config.host_index, tree) == config.rank) return true;
  return false;
}

Status check_config(const MonitorConfig& config) {
  if (config.host_index < 0 || static_cast<size_t>(config.host_index) >= config.hosts.size())
    return error(Code::InvalidArgument, "host index %d is out of range: there are %zu hosts", config.host_index,
                 config.hosts.size());
  for (const HostMembers& host : config.hosts)
    if (host.ranks.empty() || !std::ranges::is_sorted(host.ranks))
      return error(Code::InvalidArgument, "host %s has no ranks, or they are not in ascending order",
                   host.name.c_str());
  if (!std::ranges::binary_search(config.hosts[static_cast<size_t>(config.host_index)].ranks, config.rank))
    return error(Code::InvalidArgument, "rank %d is not on host %d", config.rank, config.host_index);
  if (config.dead_ms < 1)
    return error(Code::InvalidArgument, "dead_ms must be at least 1, not %lld", static_cast<long long>(config.dead_ms));
  return Status::ok();
}

// Remote hosts get a quarter more time than local ranks, so that a stopped process is reported by its own host, which
// can tell it from an unreachable one. A rank's last heartbeats there and here may lie dead/12 apart, and on a busy
// host its node-mates' look at them comes late.
TreeConfig tree_config(const MonitorConfig& config, int tree) {
  TreeConfig found{.hosts = {},
                   .self = config.host_index,
                   .dead_ns = (config.dead_ms + config.dead_ms / 4) * kNsPerMs,
                   .settle_ns = kSettleNs,
                   .decision_ns = kDecisionNs};
  for (int host = 0; host < static_cast<int>(config.hosts.size()); ++host) {
    const HostMembers& each = config.hosts[static_cast<size_t>(host)];
    found.hosts.push_back({.name = each.name, .member = tree_member(config.hosts, host, tree), .ranks = each.ranks});
  }
  return found;
}

std::vector<TreeEdge> tree_edges(const MonitorConfig& config) {
  std::vector<TreeEdge> edges;
  for (int tree = 0; tree < tree_count(config.hosts); ++tree) {
    if (tree_member(config.hosts, config.host_index, tree) != config.rank) continue;
    for (const int other : tree_neighbours(config.host_index, static_cast<int>(config.hosts.size())))
      edges.push_back({tree, other, tree_member(config.hosts, other, tree), other == tree_parent(config.host_index)});
  }
  return edges;
}

int slot_of(const MonitorConfig& config) {
  const auto& ranks = config.hosts[static_cast<size_t>(config.host_index)].ranks;
  return static_cast<int>(std::ranges::find(ranks, config.rank) - ranks.begin());
}

Result<Board> open_board(const MonitorConfig& config, Bytes memory, bool initialise) {
  const HostMembers& host = config.hosts[static_cast<size_t>(config.host_index)];
  CCOM_TRY_ASSIGN(Board board, Board::over(memory, static_cast<int>(host.ranks.size())));
  if (initialise) board.initialise();
  if (board.is_ready()) return board;
  return error(Code::InternalError, "the liveness board of host %s is used before rank %d has initialised it",
               host.name.c_str(), host.ranks.front());
}

const HostMembers* host_of(const std::vector<HostMembers>& hosts, Rank rank) {
  const auto found = std::ranges::find_if(
      hosts, [rank](const HostMembers& each) { return std::ranges::binary_search(each.ranks, rank); });
  return found == hosts.end() ? nullptr : &*found;
}

Status attributed(const Status& error, const MonitorConfig& config) noexcept {
  try {
    Status found = error;
    if (found.peers().empty()) {
      const std::string name = "rank " + std::to_string(config.rank);
      const bool says_so = error.message().starts_with(name + " ") || error.message().starts_with(name + ":");
      if (!says_so) found = std::move(found).in(name);
      found = std::move(found).with_peers({config.rank});
    }
    const HostMembers* const host = found.peers().empty() ? nullptr : host_of(config.hosts, found.peers().front());
    return host == nullptr ? found : std::move(found).with_host(host->name);
  } catch (const std::bad_alloc&) {
    return error;
  }
}

Status forked_error() {
  return error(ErrorKey::Forked,
               "this is a forked process: the communicator was created before fork() and belongs to the parent process")
      .with_cure("create the first communicator after fork(), or start processes with exec or the spawn method");
}

Status interruption(Rank self, const CallDescriptor& last_call) {
  return error(ErrorKey::WaitInterrupted, "rank %d was interrupted while it waited (last collective call: %s)", self,
               text_of(last_call).c_str())
      .with_peers({self});
}

}  // namespace ccom
