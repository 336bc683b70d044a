// SPDX-License-Identifier: Apache-2.0
#include "planner/node_choice.h"

#include "planner/node_tuning.h"

namespace ccom {
namespace {

bool has_units(Collective collective) {
  return collective != Collective::AllReduce && collective != Collective::Reduce && collective != Collective::Broadcast;
}

// Of a rank's memory that others read.
size_t shown_bytes(const Question& question, size_t nranks) {
  const bool is_unit = question.collective == Collective::AllGather || question.collective == Collective::Gather;
  return is_unit ? question.bytes / nranks : question.bytes;
}

// Input and output of all ranks.
size_t total_bytes(const Question& question, size_t nranks) {
  const size_t unit = has_units(question.collective) ? question.bytes / nranks : question.bytes;
  switch (question.collective) {
    case Collective::AllReduce: return 2 * nranks * unit;
    case Collective::AllGather:
    case Collective::ReduceScatter: return (nranks + 1) * nranks * unit;
    case Collective::AllToAll: return 2 * nranks * nranks * unit;
    case Collective::Gather:
    case Collective::Scatter: return 2 * nranks * unit;
    default: return (nranks + 1) * unit;
  }
}

// Whether the kernel should copy a rank's input for others, instead of two copies through staging memory.
bool is_worth_reading(const NodeTuning& tuning, Collective collective, size_t shown) {
  if (collective != Collective::AllReduce && collective != Collective::Reduce) return shown >= tuning.read_bytes;
  return collective == Collective::AllReduce && shown >= tuning.pull_from_bytes && shown <= tuning.pull_to_bytes;
}

}  // namespace

NodeChoice node_choice(const Topology& topology, const Question& question) {
  const NodeTuning tuning = node_tuning(topology);
  const auto nranks = static_cast<size_t>(topology.nranks());
  const size_t shown = shown_bytes(question, nranks);
  const auto shape = [&](const Reach& reach) {
    const std::vector<Reach> all(nranks, reach);
    return node_shape(
        tuning, {.collective = question.collective, .bytes = question.bytes, .rounds_once = question.narrow_float},
        all);
  };
  return {.asks = shown > tuning.small_bytes,
          .reads = is_worth_reading(tuning, question.collective, shown),
          .streams = total_bytes(question, nranks) >= tuning.stream_bytes,
          .staged = shape({}),
          .readable = shape({.input = true}),
          .mapped = shape({.input = true, .output = true})};
}

}  // namespace ccom
