// SPDX-License-Identifier: Apache-2.0
//
// Algorithms of messages in plan files.
#include <algorithm>
#include <bit>
#include <numeric>

#include "algorithms/collectives.h"
#include "algorithms/streams.h"
#include "base/collective.h"
#include "planner/plan_file_parts.h"

namespace ccom {
namespace {

using nlohmann::ordered_json;
using Kind = MessageAlgorithm::Kind;

constexpr int64_t kMostWindows = 64, kMostWeight = 1024;

template <typename T>
bool is_permutation_of_iota(std::vector<T> values, size_t size) {
  std::ranges::sort(values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (static_cast<size_t>(values[i]) != i) return false;
  }
  return values.size() == size;
}

int64_t product_of(const std::vector<int>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1},
                         [](int64_t a, int dim) { return std::min(a * dim, kMostPlanRanks + 1); });
}

// ---- Levels ---------------------------------------------------------------------------------------------------------

bool is_core(Pattern pattern) {
  return pattern == Pattern::OneShot || pattern == Pattern::RecursiveDoubling || pattern == Pattern::SwingLatency ||
         pattern == Pattern::BineLatency;
}

TorusStream read_stream(const JsonAt& at, const Level& level) {
  JsonObject object(at);
  TorusStream stream;
  const JsonAt order = object.at("order"), direction = object.at("direction");
  stream.order = integers_at<uint8_t>(order, 0, 2);
  if (!is_permutation_of_iota(stream.order, level.dims.size()))
    at.problem.add(order.path, "expected each dimension once");
  stream.direction = static_cast<int>(direction.integer(-1, 1));
  if (object.has("weight")) stream.weight = static_cast<uint32_t>(object.at("weight").integer(1, kMostWeight));
  if (stream.direction == 0 && (level.pattern != Pattern::Torus || stream.weight % 2 != 0))
    at.problem.add(direction.path, "expected 1 or -1, or 0 with torus and an even weight");
  object.finish();
  return stream;
}

// Groups are disjoint and, but for those of Direct, of `owners` members.
void check_groups(const JsonAt& at, const Level& level, int members) {
  std::vector<char> seen(static_cast<size_t>(members));
  for (const std::vector<Rank>& group : level.groups) {
    const auto size = static_cast<int>(group.size());
    if (size < level.owners || (size > level.owners && level.pattern != Pattern::Direct)) {
      at.problem.add(
          at.path, "a group of " + std::to_string(size) + " members with " + std::to_string(level.owners) + " owners");
    }
    for (const Rank rank : group) {
      if (std::exchange(seen[static_cast<size_t>(rank)], 1) != 0) {
        at.problem.add(at.path, "rank " + std::to_string(rank) + " is there twice");
      }
    }
  }
}

void check_dims(const JsonAt& at, const Level& level) {
  const bool is_swing = level.pattern == Pattern::Swing || level.pattern == Pattern::SwingLatency;
  const bool needs = is_swing || level.pattern == Pattern::Torus;
  if (level.pattern == Pattern::Bine && !std::has_single_bit(static_cast<unsigned>(level.owners))) {
    at.problem.add(at.path, "bine needs groups of a power of two of ranks");
  }
  if (level.dims.empty() && !needs) return;
  if (level.dims.empty() || level.dims.size() > 3 || product_of(level.dims) != level.owners) {
    at.problem.add(at.path, "expected one to three dimensions whose product is " + std::to_string(level.owners));
  }
  if (is_swing &&
      !std::ranges::all_of(level.dims, [](int dim) { return std::has_single_bit(static_cast<unsigned>(dim)); })) {
    at.problem.add(at.path, "expected powers of two");
  }
}

Level read_level(const JsonAt& at, int members) {
  JsonObject object(at);
  Level level;
  level.pattern = word_at<Pattern>(object.at("pattern"), kPatternWords);
  const JsonAt groups = object.at("groups");
  for_elements(groups, 1, kMostPlanItems,
               [&](const JsonAt& group) { level.groups.push_back(integers_at<Rank>(group, 0, members - 1)); });
  level.owners = level.groups.empty() ? 1 : static_cast<int>(level.groups[0].size());
  if (object.has("owners")) level.owners = static_cast<int>(object.at("owners").integer(1, members));
  check_groups(groups, level, members);
  if (object.has("dims")) level.dims = integers_at<int>(object.at("dims"), 1, members);
  check_dims(at, level);
  if (object.has("streams")) {
    const JsonAt streams = object.at("streams");
    for_elements(streams, 1, 64, [&](const JsonAt& stream) { level.streams.push_back(read_stream(stream, level)); });
    if (weight_sum(level.streams) > kMostWeight) at.problem.add(streams.path, "weights sum up to too much");
  }
  if (object.has("cycles")) {
    for_elements(object.at("cycles"), 1, 64, [&](const JsonAt& cycle) {
      level.cycles.push_back(integers_at<uint32_t>(cycle, 0, members - 1));
      if (!is_permutation_of_iota(level.cycles.back(), static_cast<size_t>(level.owners))) {
        at.problem.add(cycle.path, "expected each member once");
      }
    });
  }
  if (level.pattern == Pattern::Rings && level.cycles.empty()) at.problem.add(at.path, "rings need cycles");
  object.finish();
  return level;
}

Staged read_staged(const JsonAt& at, int members) {
  JsonObject object(at);
  Staged staged;
  const auto read = [&](const char* key, std::vector<Level>& levels, size_t most, bool core) {
    if (!object.has(key)) return;
    for_elements(object.at(key), 0, most, [&](const JsonAt& level) {
      levels.push_back(read_level(level, members));
      if (is_core(levels.back().pattern) != core) at.problem.add(level.path, "its pattern does not belong there");
    });
  };
  read("levels", staged.levels, 8, false);
  read("core", staged.core, 1, true);
  if (object.has("windows")) staged.windows = static_cast<int>(object.at("windows").integer(1, kMostWindows));
  if (object.has("by_position")) staged.by_position = object.at("by_position").boolean();
  if (at.problem.status().is_ok() && channels_of(staged) > kMostChannels) {
    at.problem.add(at.path, "needs more than " + std::to_string(kMostChannels) + " channels between two ranks");
  }
  object.finish();
  return staged;
}

ordered_json json_of(const Level& level) {
  ordered_json object = {{"pattern", kPatternWords[static_cast<size_t>(level.pattern)]}, {"groups", level.groups}};
  const bool is_default = !level.groups.empty() && level.owners == static_cast<int>(level.groups[0].size());
  if (!is_default) object["owners"] = level.owners;
  if (!level.dims.empty()) object["dims"] = level.dims;
  for (const TorusStream& stream : level.streams) {
    object["streams"].push_back({{"order", stream.order}, {"direction", stream.direction}, {"weight", stream.weight}});
  }
  if (!level.cycles.empty()) object["cycles"] = level.cycles;
  return object;
}

ordered_json json_of(const Staged& staged) {
  ordered_json object = ordered_json::object();
  for (const Level& level : staged.levels) object["levels"].push_back(json_of(level));
  for (const Level& level : staged.core) object["core"].push_back(json_of(level));
  if (staged.windows != 1) object["windows"] = staged.windows;
  if (staged.by_position) object["by_position"] = true;
  return object;
}

// ---- Radices --------------------------------------------------------------------------------------------------------

Radix read_radix(const JsonAt& at, const AlgorithmUse& use) {
  JsonObject object(at);
  Radix radix;
  std::vector<Rank> all;
  for_elements(object.at("hosts"), 1, static_cast<size_t>(use.members), [&](const JsonAt& host) {
    radix.hosts.push_back(integers_at<Rank>(host, 0, use.members - 1));
    all.insert(all.end(), radix.hosts.back().begin(), radix.hosts.back().end());
  });
  radix.dims = integers_at<int>(object.at("dims"), 1, use.members);
  radix.radices = integers_at<int>(object.at("radices"), 2, use.members);
  object.finish();
  const size_t per_host = radix.hosts.empty() ? 0 : radix.hosts[0].size();
  const auto fits = [&](int value) { return static_cast<size_t>(value) <= per_host; };
  const auto is_like_first = [&](const auto& host) { return host.size() == per_host; };
  const int64_t joined = product_of(radix.radices), hosts = static_cast<int64_t>(radix.hosts.size());
  if (!is_permutation_of_iota(all, static_cast<size_t>(use.members)) ||
      !std::ranges::all_of(radix.hosts, is_like_first)) {
    at.problem.add(at.path + ".hosts", "expected lists of equally many ranks, each rank once");
  } else if (radix.dims.empty() || product_of(radix.dims) != static_cast<int64_t>(per_host)) {
    at.problem.add(at.path + ".dims", "expected dimensions whose product is " + std::to_string(per_host));
  } else if (!std::ranges::all_of(radix.radices, fits) || joined > hosts || hosts > 2 * joined) {
    at.problem.add(at.path + ".radices",
                   "expected radices of at most the ranks of a host, whose product is at most "
                   "the hosts and at least half of them");
  }
  return radix;
}

ordered_json json_of(const Radix& radix) {
  return {{"hosts", radix.hosts}, {"dims", radix.dims}, {"radices", radix.radices}};
}

// Whether algorithms of a kind can be what a stage needs.
std::string wrong_with(const MessageAlgorithm& algorithm, const AlgorithmUse& use) {
  const Collective collective = use.collective;
  const bool all = collective == Collective::AllReduce || collective == Collective::Barrier;
  const bool by_owner = collective == Collective::ReduceScatter || collective == Collective::AllGather;
  const bool exchanges = collective == Collective::AllToAll;
  const bool routes = algorithm.kind == Kind::Routed && algorithm.tree.parent.empty();
  switch (algorithm.kind) {
    case Kind::Staged:
      if (!all && !by_owner && !exchanges) return "staged does not serve this collective";
      if (use.where != Stage::Where::All && (exchanges || algorithm.staged.by_position))
        return "moves units by position, in stages of all ranks only";
      if (exchanges && (!algorithm.staged.core.empty() || !ExchangePlans(algorithm.staged, use.members).is_grid()))
        return "its levels are no grid of all members";
      break;
    case Kind::Tree:
    case Kind::Trees:
      if (collective == Collective::AllToAll) return "a tree does not serve this collective";
      if (algorithm.kind == Kind::Tree) break;
      if (algorithm.trees.empty() || (is_per_rank(collective) && algorithm.trees.size() > 1)) {
        return "several trees do not serve this collective";
      }
      if (!std::ranges::all_of(algorithm.trees,
                               [&](const Tree& tree) { return tree.lead.empty() == algorithm.trees[0].lead.empty(); }))
        return "either all trees have a lead, or none";
      break;
    case Kind::Radix:
      if (!all) return "radix does not serve this collective";
      break;
    case Kind::Pairwise:
    case Kind::Bruck:
    case Kind::Routed:
    case Kind::Bine:
      if (collective != Collective::AllToAll) return "serves alltoall only";
      if (algorithm.kind == Kind::Bine && !std::has_single_bit(static_cast<unsigned>(use.members))) {
        return "needs a power of two of ranks";
      }
      break;
    case Kind::Blocks:
      if (use.where != Stage::Where::Across) return "blocks serve stages across only";
      break;
    case Kind::Explicit:
      if (use.where != Stage::Where::All &&
          !std::ranges::all_of(algorithm.plans, [](const Plan& plan) { return plan.order.empty(); }))
        return "plans with an order are for stages of all ranks only";
      break;
  }
  const bool needs_even = routes || (algorithm.kind == Kind::Staged && (by_owner || collective == Collective::Barrier));
  if (needs_even && !divides_evenly(algorithm.staged, use.members)) {
    return "every rank has to be an owner on every level, without a core";
  }
  return {};
}

}  // namespace

MessageAlgorithm read_algorithm(const JsonAt& at, const AlgorithmUse& use) {
  JsonObject object(at);
  MessageAlgorithm algorithm;
  const JsonAt kind = object.at("kind");
  algorithm.kind = word_at<Kind>(kind, kKindWords);
  algorithm.name = object.has("name") ? object.at("name").text(1, 64) : kKindWords[static_cast<size_t>(algorithm.kind)];
  const bool routed_by_tree = algorithm.kind == Kind::Routed && object.has("tree");
  if (algorithm.kind == Kind::Staged || (algorithm.kind == Kind::Routed && !routed_by_tree)) {
    algorithm.staged = read_staged(object.at("staged"), use.members);
  }
  if (algorithm.kind == Kind::Tree || routed_by_tree) algorithm.tree = read_tree(object.at("tree"), use);
  if (algorithm.kind == Kind::Trees) {
    for_elements(object.at("trees"), 1, 64,
                 [&](const JsonAt& tree) { algorithm.trees.push_back(read_tree(tree, use)); });
  }
  if (algorithm.kind == Kind::Radix) algorithm.radix = read_radix(object.at("radix"), use);
  if (algorithm.kind == Kind::Explicit) {
    const auto members = static_cast<size_t>(use.members);
    for_elements(object.at("plans"), members, members, [&](const JsonAt& plan) {
      algorithm.plans.push_back(read_plan(plan, use, static_cast<int>(algorithm.plans.size()), algorithm.name));
    });
  }
  object.finish();
  if (!at.problem.status().is_ok()) return algorithm;
  if (const std::string what = wrong_with(algorithm, use); !what.empty()) at.problem.add(kind.path, what);
  return algorithm;
}

ordered_json json_of(const MessageAlgorithm& algorithm) {
  ordered_json object = {{"name", algorithm.name}, {"kind", kKindWords[static_cast<size_t>(algorithm.kind)]}};
  const bool routed_by_tree = algorithm.kind == Kind::Routed && !algorithm.tree.parent.empty();
  if (algorithm.kind == Kind::Staged || (algorithm.kind == Kind::Routed && !routed_by_tree)) {
    object["staged"] = json_of(algorithm.staged);
  }
  if (algorithm.kind == Kind::Tree || routed_by_tree) object["tree"] = json_of(algorithm.tree);
  for (const Tree& tree : algorithm.trees) object["trees"].push_back(json_of(tree));
  if (algorithm.kind == Kind::Radix) object["radix"] = json_of(algorithm.radix);
  for (const Plan& plan : algorithm.plans) object["plans"].push_back(json_of(plan));
  return object;
}

}  // namespace ccom
