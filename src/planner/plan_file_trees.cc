// SPDX-License-Identifier: Apache-2.0
//
// Trees in plan files.
#include <algorithm>

#include "base/collective.h"
#include "planner/plan_file_parts.h"

namespace ccom {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kMostTreeChunks = 1024, kMostLead = 1 << 24;

// A sum is due before that of the rank which waits for it: otherwise sends in that order would wait for ever.
void check_leads(const Tree& tree, const AlgorithmUse& use, const JsonAt& at) {
  if (tree.lead.empty()) return;
  if (use.collective != Collective::Reduce || tree.gathers)
    at.problem.add(at.path + ".lead", "is for sums of a reduce");
  for (const auto& [name, size] : {std::pair(".lead", tree.lead.size()), std::pair(".egress", tree.egress.size())}) {
    if (size != tree.parent.size())
      at.problem.add(at.path + name, "expected " + std::to_string(tree.parent.size()) + " ranks");
  }
  for (size_t rank = 0; rank < std::min(tree.lead.size(), tree.parent.size()); ++rank) {
    const Rank parent = tree.parent[rank];
    if (parent < 0 || tree.lead[rank] >= tree.lead[static_cast<size_t>(parent)]) continue;
    at.problem.add(at.path + ".lead",
                   "rank " + std::to_string(rank) + " has less than rank " + std::to_string(parent) + ", its parent");
    return;
  }
}

}  // namespace

Tree read_tree(const JsonAt& at, const AlgorithmUse& use) {
  JsonObject object(at);
  Tree tree;
  const JsonAt root = object.at("root"), parent = object.at("parent");
  tree.root = static_cast<Rank>(root.integer(0, use.members - 1));
  tree.parent = integers_at<Rank>(parent, -1, use.members - 1);
  if (object.has("chunks")) tree.chunks = static_cast<int>(object.at("chunks").integer(1, kMostTreeChunks));
  if (object.has("gathers")) tree.gathers = object.at("gathers").boolean();
  if (object.has("by_position")) tree.by_position = object.at("by_position").boolean();
  if (tree.by_position && use.where != Stage::Where::All)
    at.problem.add(at.path, "moves units by position, in stages of all ranks only");
  if (object.has("lead")) {
    tree.lead = integers_at<uint32_t>(object.at("lead"), 0, kMostLead);
    tree.egress = integers_at<uint8_t>(object.at("egress"), 0, UINT8_MAX);
  }
  object.finish();
  if (is_rooted(use.collective) && tree.root != use.root) at.problem.add(root.path, "is not the stage's root");
  if (tree.parent.size() != static_cast<size_t>(use.members)) {
    at.problem.add(parent.path, "expected " + std::to_string(use.members) + " ranks");
    return tree;
  }
  for (Rank rank = 0; rank < use.members; ++rank) {
    Rank top = rank;
    for (int steps = 0; steps < use.members && tree.parent[static_cast<size_t>(top)] >= 0; ++steps) {
      top = tree.parent[static_cast<size_t>(top)];
    }
    if (top != tree.root || tree.parent[static_cast<size_t>(top)] >= 0) {
      at.problem.add(parent.path, "rank " + std::to_string(rank) + " is not below the root");
      return tree;
    }
  }
  check_leads(tree, use, at);
  return tree;
}

ordered_json json_of(const Tree& tree) {
  ordered_json object = {{"root", tree.root}, {"parent", tree.parent}, {"chunks", tree.chunks}};
  if (tree.gathers) object["gathers"] = true;
  if (tree.by_position) object["by_position"] = true;
  if (!tree.lead.empty()) {
    object["lead"] = tree.lead;
    object["egress"] = tree.egress;
  }
  return object;
}

}  // namespace ccom
