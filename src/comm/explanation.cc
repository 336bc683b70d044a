// SPDX-License-Identifier: Apache-2.0
#include "comm/explanation.h"

#include <bit>

#include "base/json_text.h"
#include "base/text.h"
#include "comm/communicator.h"
#include "comm/host_ways.h"
#include "planner/link_loads.h"
#include "planner/machine_view.h"

namespace ccom {
namespace {

// Of analyze(): steps of all ranks' plans that are made to count what wires carry. A communicator's own calls are
// explained by each rank, often before each of many sizes; offline nobody waits for more than a second or so.
constexpr size_t kStepsOfRank = size_t{1} << 13;
constexpr size_t kStepsOffline = size_t{1} << 19;

// What a rank says of its counts before anything is moved (v_forms.cc).
struct Said {
  uint64_t claim, places;
};

// The plan with the same messages as a v-form, priced as messages; the only candidate.
Result<Choice> choose_straight(const Topology& topology, Question question) {
  question.is_v = false;
  const bool is_exchange = question.collective == Collective::AllToAll;
  CCOM_TRY_ASSIGN(Choice choice, choose(topology, {.forced = is_exchange ? "pairwise" : "star"}, question));
  Candidate taken = std::move(choice.candidates[choice.chosen]);
  Choice only;
  only.candidates.push_back(std::move(taken));
  only.reason = "parts go straight from the ranks that have them to those that get them";
  return only;
}

Result<std::string> explain_parts(const Topology& topology, const Question& question, const Chooser& chooser,
                                  size_t most_steps, const std::string& more) {
  if (machine_view(topology).all_linked) {
    CCOM_TRY_ASSIGN(const Choice choice, choose_straight(topology, question));
    const Details details = analyze(topology, question, choice, most_steps);
    return explain_json(question, choice, &details, more);
  }
  // Of what all ranks send together.
  const bool is_exchange = question.collective == Collective::AllToAll;
  Question everything{.collective = Collective::AllGather,
                      .bytes = question.bytes * (is_exchange ? static_cast<size_t>(topology.nranks()) : 1),
                      .is_v = true};
  CCOM_TRY_ASSIGN(Choice choice, chooser(everything));
  choice.reason = "not all ranks are linked: an allgather of everything";
  Details details = analyze(topology, everything, choice, most_steps);
  details.bound = lower_bound(topology, question);
  details.why[choice.chosen] = choice.reason;
  return explain_json(question, choice, &details, more);
}

// The allgather that every v-form begins with.
Result<std::string> agreement_json(const Topology& topology, const Chooser& chooser) {
  Question question{.collective = Collective::AllGather,
                    .bytes = sizeof(Said) * static_cast<size_t>(topology.nranks())};
  CCOM_TRY_ASSIGN(const Choice choice, chooser(question));
  const Candidate& chosen = choice.candidates[choice.chosen];
  return ",\"agreement\":{\"algorithm\":" + json_text(chosen.program.algorithm) +
         printed(",\"bytes\":%zu,\"steps\":%.0f,\"time_us\":%.3f}", question.bytes, chosen.steps, chosen.time_ns / 1e3);
}

Question question_of(const Request& request, int nranks, bool is_v) {
  return {.collective = request.collective,
          .bytes = request.count * size_of(request.type) * largest_units(request.collective, nranks),
          .narrow_float = reduces(request.collective) && is_narrow_float(request.type),
          .root = request.root,
          .is_v = is_v};
}

}  // namespace

Result<std::string> explanation(const Topology& topology, const Question& question, const Chooser& chooser,
                                size_t most_steps, bool in_memory, const std::string& more) {
  std::string fields = more;
  if (question.is_v && !in_memory) {
    CCOM_TRY_ASSIGN(const std::string agreement, agreement_json(topology, chooser));
    fields = agreement + more;
    if (!moves_units(question.collective)) return explain_parts(topology, question, chooser, most_steps, fields);
  }
  Question asked = question;
  asked.is_v = question.is_v && moves_units(question.collective);  // an alltoallv in memory: as the plain form
  CCOM_TRY_ASSIGN(const Choice choice, chooser(asked));
  const Details details = analyze(topology, asked, choice, most_steps);
  asked.is_v = question.is_v;
  return explain_json(asked, choice, &details, fields);
}

Result<std::string> explain_offline(const Topology& topology, const Request& request, bool is_v) {
  CCOM_TRY(check_connected(topology));
  const Chooser chooser = [&](const Question& question) { return choose(topology, {.shared_memory = true}, question); };
  const bool in_memory = topology.hosts.size() == 1 && topology.nranks() > 1 && is_v &&
                         !is_rooted(request.collective) && uses_memory(topology, {.shared_memory = true});
  return explanation(topology, question_of(request, topology.nranks(), is_v), chooser, kStepsOffline, in_memory);
}

Result<std::string> Communicator::explain(const Request& request, bool is_v) {
  std::string text;
  Turns::Ticket place = turns_.take();
  turns_.wait_for_all(place);
  // The size's class, as calls ask.
  const Chooser chooser = [&](Question& question) -> Result<Choice> {
    question.bytes = question.bytes == 0 ? 0 : std::bit_ceil(question.bytes);
    CCOM_TRY_ASSIGN(const ProgramChoices::Chosen* const chosen, choices_->get(question));
    return *chosen->choice;
  };
  CCOM_TRY(in_turn(place, [&]() -> Status {
    ProgramKey key = key_of(request);
    if (is_v && moves_units(request.collective)) {
      const std::vector<size_t> lengths(static_cast<size_t>(membership_.nranks), request.count);
      key.count = 0;
      key.in_place = false;
      key.units = {lengths, in_a_row(lengths)};
    }
    const bool in_memory = is_v && runs_v_form_in_memory(request.collective);
    const bool has_units = moves_units(request.collective) || in_memory;
    const bool has_program = !is_v || (has_units && request.count > 0);
    Question question = has_program ? programs_->question(key) : question_of(request, membership_.nranks, is_v);
    question.is_v = is_v;
    CCOM_TRY_ASSIGN(text, explanation(topology_, question, chooser, kStepsOfRank, in_memory,
                                      has_program ? host_ways(request, is_v, key) : std::string()));
    return {};
  }));
  return text;
}

// Nothing for a program that this communicator would refuse to run: the call will say why.
std::string Communicator::host_ways(const Request& request, bool is_v, const ProgramKey& key) {
  if (host_ == nullptr || request.collective == Collective::SendReceive) return "";
  const Result<const BoundProgram*> program = programs_->get(key);
  return program ? host_ways_json(**program, request, is_v, *host_, links_->measured_costs()) : "";
}

}  // namespace ccom
