// SPDX-License-Identifier: Apache-2.0
//
// A stage that combines all parts at one place, in the order of its members, makes the same expression of every
// element; rings, halvings and tori begin elsewhere for each block. Stages of hosts come before those between them,
// whoever crosses.
#include "algorithms/same_sums.h"

#include <algorithm>
#include <optional>

namespace ccom {
namespace {

bool combines_at_once(const MessageAlgorithm& algorithm, size_t members) {
  if (algorithm.kind == MessageAlgorithm::Kind::Blocks) return true;
  if (algorithm.kind != MessageAlgorithm::Kind::Staged) return false;
  const Staged& shape = algorithm.staged;
  if (shape.levels.size() + shape.core.size() != 1) return false;
  const Level& level = shape.levels.empty() ? shape.core[0] : shape.levels[0];
  if (level.groups.size() != 1 || level.groups[0].size() != members) return false;
  return std::ranges::is_sorted(level.groups[0]) &&
         (level.pattern == Pattern::Direct || level.pattern == Pattern::OneShot);
}

// Where the sums are formed, one after another; nothing if it is not known that elements' places do not matter. Those
// in one block share a scale.
std::optional<std::vector<Stage::Where>> places_of_sums(const Program& program) {
  if (is_block(program.wire())) return {};
  std::vector<Stage::Where> places;
  for (const Stage& stage : program.stages) {
    if (!stage.sums) continue;
    const size_t members =
        stage.where == Stage::Where::All ? static_cast<size_t>(program.nranks) : stage.groups[0].size();
    const bool at_once = stage.where == Stage::Where::Host ? !stage.node.has_scheme(NodeScheme::Domains)
                                                           : combines_at_once(stage.messages, members);
    if (!at_once) return {};
    places.push_back(stage.where);
  }
  return places;
}

}  // namespace

bool sums_alike(const Program& a, const Program& b) {
  const auto places = places_of_sums(a);
  return places && a.wire() == b.wire() && places == places_of_sums(b);
}

}  // namespace ccom
