// SPDX-License-Identifier: Apache-2.0
//
// Which scheme a call takes.
#include <algorithm>

#include "algorithms/node.h"

namespace ccom {

NodeShape node_shape(const NodeTuning& tuning, const NodeCase& asked, std::span<const Reach> reach) {
  const bool is_allreduce = asked.collective == Collective::AllReduce;
  if (!is_allreduce && asked.collective != Collective::Reduce) return {NodeScheme::Direct, {}};
  if (asked.bytes <= tuning.small_bytes) {  // nobody is reached
    return tuning.groups.empty() ? NodeShape{NodeScheme::OneShot, {}, true}
                                 : NodeShape{NodeScheme::GatherRelease, tuning.groups};
  }
  // Outputs are reached where memory is mapped, inputs alone where it can only be read.
  const bool is_mapped = std::ranges::any_of(reach, &Reach::output);
  if (asked.bytes <= tuning.one_shot_bytes) {
    return {is_mapped ? NodeScheme::TwoShot : NodeScheme::OneShot, {}, true};
  }
  const bool pulls = is_allreduce && !is_mapped && std::ranges::all_of(reach, &Reach::input);
  if (pulls && asked.bytes >= tuning.pull_from_bytes && asked.bytes <= tuning.pull_to_bytes) {
    return {NodeScheme::Pull, {}};
  }
  const bool divides = !tuning.domains.empty() && !asked.rounds_once && is_allreduce;
  return divides ? NodeShape{NodeScheme::Domains, tuning.domains} : NodeShape{NodeScheme::TwoShot, {}};
}

}  // namespace ccom
