// SPDX-License-Identifier: Apache-2.0
#include "comm/explanation.h"

#include "planner/link_loads.h"

namespace ccom {
namespace {

// Of analyze(): steps of all ranks' plans that are made to count what wires carry. A communicator's own calls are
// explained by each rank, often before each of many sizes; offline nobody waits for more than a second or so.
constexpr size_t kStepsOfRank = size_t{1} << 13;
constexpr size_t kStepsOffline = size_t{1} << 19;

}  // namespace

std::string explanation(const Topology& topology, const Question& question, const Choice& choice,
                        const std::string& more) {
  const Details details = analyze(topology, question, choice, kStepsOfRank);
  return explain_json(question, choice, &details, more);
}

Result<std::string> explain_offline(const Topology& topology, const Request& request) {
  CCOM_TRY(check_connected(topology));
  const size_t units = largest_units(request.collective, topology.nranks());
  const Question question{.collective = request.collective,
                          .bytes = request.count * size_of(request.type) * units,
                          .narrow_float = reduces(request.collective) && is_narrow_float(request.type),
                          .root = request.root};
  CCOM_TRY_ASSIGN(const Choice choice, choose(topology, {.shared_memory = true}, question));
  const Details details = analyze(topology, question, choice, kStepsOffline);
  return explain_json(question, choice, &details);
}

}  // namespace ccom
