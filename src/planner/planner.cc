// SPDX-License-Identifier: Apache-2.0
#include "planner/planner.h"

#include <algorithm>
#include <bit>

#include "algorithms/collectives.h"
#include "planner/column_trees.h"
#include "planner/fabric_search.h"
#include "planner/forced.h"
#include "planner/hierarchical_search.h"
#include "planner/search.h"
#include "planner/user_plans.h"

namespace ccom {

int allowed_roundings(const Topology& topology) {
  const auto hosts = static_cast<unsigned>(topology.hosts.size());
  return (topology.nranks() > static_cast<int>(hosts) ? 1 : 0) + static_cast<int>(std::bit_width(hosts - 1));
}

namespace {

bool has_fabric(const Topology& topology) {
  return std::ranges::any_of(topology.hosts, [](const Host& host) { return host.imposed.has_value(); });
}

}  // namespace

bool uses_memory(const Topology& topology, const Settings& settings) {
  return settings.shared_memory && !has_fabric(topology);
}

bool reaches_hosts(const Topology& topology, const Settings& settings) {
  return uses_memory(topology, settings) || (!has_fabric(topology) && topology.ranks.size() == topology.hosts.size());
}

UnitType crosses_as(const Topology& topology, const Settings& settings, const Question& question) {
  const bool is_plain =
      question.collective != Collective::AllReduce || topology.hosts.size() < 2 || question.bytes <= kMostPlainBytes;
  return !is_plain && reaches_hosts(topology, settings) ? question.wire : UnitType::Call;
}

Result<Choice> choose(const Topology& topology, const Settings& settings, const Question& question) {
  if (question.is_v) return search(topology, settings, question);  // users' plans may move several units in a step
  CCOM_TRY_ASSIGN(std::optional<Choice> given, choose_from_plans(topology, settings, question));
  return given ? *std::move(given) : search(topology, settings, question);
}

// Ranks first tell one another whether they can, which costs about as much as a call. What is saved is latency; longer
// calls take as long as their bytes.
Fusing fusing(bool is_small) { return {is_small ? size_t{5} : size_t{3}, size_t{64} << 10}; }

std::vector<int> channels_by_peer(const Topology& topology, const Settings& settings, Rank rank) {
  std::vector<int> channels(topology.ranks.size(),
                            std::max(channels_needed(topology, settings.forced), channels_of_plans(settings)));
  const bool is_alone = settings.wire != UnitType::Call || topology.bytes_between_racks() > 0;
  if (!uses_memory(topology, settings) && !(is_alone && reaches_hosts(topology, settings))) return channels;
  const HostRanks hosts = host_ranks(topology);
  const int lanes = lanes_across(hosts.size());
  const auto last_of = [&](const Place& place) {
    return static_cast<int>(hosts[static_cast<size_t>(place.host)].size()) - 1;
  };
  const Place& own = topology.ranks[static_cast<size_t>(rank)];
  for (size_t peer = 0; peer < channels.size(); ++peer) {
    const Place& other = topology.ranks[peer];
    // Owners of one slice have one local rank; of a root's, hosts with fewer ranks take their last.
    const int common = std::max(own.local, other.local);
    const bool meets = std::min(common, last_of(own)) == own.local && std::min(common, last_of(other)) == other.local;
    if (own.host != other.host && meets) channels[peer] = std::max(channels[peer], lanes);
  }
  return channels;
}

int channels_needed(const Topology& topology, std::string_view forced) {
  constexpr int kMost = 16;  // that transports open between two ranks
  const MachineView view = machine_view(topology);
  if (!view.follows_fabric) return asks_for_torus(forced) ? 4 : 1;
  int most = 2;  // the two trees
  for (MessageAlgorithm& algorithm : fabric_algorithms(view, Collective::AllReduce)) {
    if (algorithm.kind != MessageAlgorithm::Kind::Staged) continue;
    Staged& shape = algorithm.staged;
    shape.windows = gains_by_windows(view, shape) ? 2 : 1;
    if (channels_of(shape) > kMost) shape.windows = 1;
    if (channels_of(shape) <= kMost) most = std::max(most, channels_of(shape));
  }
  for (const Collective collective : {Collective::Broadcast, Collective::Reduce}) {
    const std::vector<Tree> trees = column_trees(view, 0, collective);
    if (!trees.empty() && channels_of(trees) <= kMost) most = std::max(most, channels_of(trees));
  }
  return most;
}

}  // namespace ccom
