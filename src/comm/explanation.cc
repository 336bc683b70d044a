// SPDX-License-Identifier: Apache-2.0
#include "comm/explanation.h"

#include "comm/communicator.h"
#include "comm/host_ways.h"
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

Result<std::string> Communicator::explain(const Request& request) {
  std::string text;
  Turns::Ticket place = turns_.take();
  turns_.wait_for_all(place);
  CCOM_TRY(in_turn(place, [&]() -> Status {
    const ProgramKey key = key_of(request);
    CCOM_TRY_ASSIGN(const std::shared_ptr<const Choice> choice, programs_->choice(key));
    text = explanation(topology_, programs_->question(key), *choice, host_ways(request));
    return {};
  }));
  return text;
}

// Nothing for a program that this communicator would refuse to run: the call will say why.
std::string Communicator::host_ways(const Request& request) {
  if (host_ == nullptr || request.collective == Collective::SendReceive) return "";
  const Result<const BoundProgram*> program = programs_->get(key_of(request));
  return program ? host_ways_json(**program, request, host_->choices(), links_->measured_costs()) : "";
}

}  // namespace ccom
