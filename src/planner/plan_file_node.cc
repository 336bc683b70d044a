// SPDX-License-Identifier: Apache-2.0
//
// Node choices in plan files.
#include <algorithm>

#include "planner/plan_file_parts.h"

namespace ccom {
namespace {

using nlohmann::ordered_json;

// Disjoint lists that together are 0 ... size - 1.
bool is_partition(const std::vector<std::vector<Rank>>& groups, size_t size) {
  std::vector<Rank> all;
  for (const std::vector<Rank>& group : groups) {
    if (group.empty() || !std::ranges::is_sorted(group)) return false;
    all.insert(all.end(), group.begin(), group.end());
  }
  std::ranges::sort(all);
  return all.size() == size && std::ranges::adjacent_find(all) == all.end() &&
         (all.empty() || (all.front() == 0 && all.back() == static_cast<Rank>(size) - 1));
}

bool serves(NodeScheme scheme, Collective collective) {
  switch (scheme) {
    case NodeScheme::Direct: return true;
    case NodeScheme::OneShot:
    case NodeScheme::TwoShot: return collective == Collective::AllReduce || collective == Collective::Reduce;
    default: return collective == Collective::AllReduce;
  }
}

NodeShape read_shape(const JsonAt& at, Collective collective, const std::vector<size_t>& sizes) {
  JsonObject object(at);
  NodeShape shape;
  const JsonAt scheme = object.at("scheme");
  shape.scheme = word_at<NodeScheme>(scheme, kSchemeWords);
  if (collective != Collective::Barrier && !serves(shape.scheme, collective)) {
    at.problem.add(scheme.path, "does not serve " + std::string(name_of(collective)));
  }
  if (object.has("whole")) shape.whole = object.at("whole").boolean();
  if (object.has("groups")) {
    const JsonAt groups = object.at("groups");
    for_elements(groups, 1, kMostPlanItems,
                 [&](const JsonAt& group) { shape.groups.push_back(integers_at<Rank>(group, 0, kMostPlanRanks - 1)); });
    for (const size_t size : sizes) {
      if (!is_partition(shape.groups, size)) {
        at.problem.add(groups.path,
                       "expected lists that are, ascending, all of the " + std::to_string(size) + " local ranks");
      }
    }
  }
  const bool needs_groups = shape.scheme == NodeScheme::GatherRelease || shape.scheme == NodeScheme::Domains;
  const auto is_like_first = [&](const auto& group) { return group.size() == shape.groups[0].size(); };
  if (needs_groups && shape.groups.empty()) at.problem.add(scheme.path, "needs groups");
  if (shape.scheme == NodeScheme::Domains && !std::ranges::all_of(shape.groups, is_like_first)) {
    at.problem.add(scheme.path, "needs groups of one size");
  }
  object.finish();
  return shape;
}

ordered_json json_of(const NodeShape& shape) {
  ordered_json object = {{"scheme", kSchemeWords[static_cast<size_t>(shape.scheme)]}};
  if (shape.whole) object["whole"] = true;
  if (!shape.groups.empty()) object["groups"] = shape.groups;
  return object;
}

}  // namespace

NodeChoice read_node_choice(const JsonAt& at, Collective collective, const std::vector<size_t>& sizes) {
  JsonObject object(at);
  NodeChoice choice;
  const auto flag = [&](const char* key, bool& value) {
    if (object.has(key)) value = object.at(key).boolean();
  };
  flag("asks", choice.asks);
  flag("reads", choice.reads);
  flag("streams", choice.streams);
  flag("streams_shared", choice.streams_shared);
  flag("stages_mapped", choice.stages_mapped);
  flag("claims_lines", choice.claims_lines);
  choice.staged = read_shape(object.at("staged"), collective, sizes);
  choice.readable = choice.mapped = choice.staged;
  if (object.has("readable")) choice.readable = read_shape(object.at("readable"), collective, sizes);
  if (object.has("mapped")) choice.mapped = read_shape(object.at("mapped"), collective, sizes);
  if (object.has("tile_bytes")) {
    choice.tile_bytes = static_cast<size_t>(object.at("tile_bytes").integer(1, INT64_MAX));
  }
  object.finish();
  return choice;
}

ordered_json json_of(const NodeChoice& choice) {
  ordered_json object = {
      {"asks", choice.asks}, {"reads", choice.reads}, {"streams", choice.streams}, {"staged", json_of(choice.staged)}};
  if (choice.readable != choice.staged) object["readable"] = json_of(choice.readable);
  if (choice.mapped != choice.staged) object["mapped"] = json_of(choice.mapped);
  if (choice.streams_shared) object["streams_shared"] = true;
  if (choice.stages_mapped) object["stages_mapped"] = true;
  if (choice.claims_lines) object["claims_lines"] = true;
  if (choice.tile_bytes != SIZE_MAX) object["tile_bytes"] = choice.tile_bytes;
  return object;
}

}  // namespace ccom
