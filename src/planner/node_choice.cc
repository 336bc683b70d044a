// SPDX-License-Identifier: Apache-2.0
#include "planner/node_choice.h"

#include "planner/node_tuning.h"

namespace ccom {
namespace {

// Whether the kernel should copy a rank's input for others, instead of two copies through staging memory.
bool is_worth_reading(const NodeTuning& tuning, Collective collective, size_t shown) {
  if (!reduces(collective) || is_per_rank(collective)) return shown >= tuning.read_bytes;
  return collective == Collective::AllReduce && shown >= tuning.pull_from_bytes && shown <= tuning.pull_to_bytes;
}

}  // namespace

NodeChoice node_choice(const Topology& topology, const Question& question) {
  const NodeTuning tuning = node_tuning(topology);
  const int nranks = topology.nranks();
  const size_t unit = question.bytes / largest_units(question.collective, nranks);
  const size_t shown = unit * input_units(question.collective, nranks, true);  // to others, by a rank
  const auto shape = [&](const Reach& reach) {
    const std::vector<Reach> all(static_cast<size_t>(nranks), reach);
    return node_shape(
        tuning, {.collective = question.collective, .bytes = question.bytes, .rounds_once = question.narrow_float},
        all);
  };
  return {.asks = shown > tuning.small_bytes,
          .reads = is_worth_reading(tuning, question.collective, shown),
          .streams = total_units(question.collective, nranks) * unit >= tuning.stream_bytes,
          .staged = shape({}),
          .readable = shape({.input = true}),
          .mapped = shape({.input = true, .output = true})};
}

}  // namespace ccom
