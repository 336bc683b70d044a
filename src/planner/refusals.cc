// SPDX-License-Identifier: Apache-2.0
#include "planner/refusals.h"

#include "algorithms/rank_order.h"

namespace ccom {

std::string refusal(const Question& question, const Candidate& candidate) {
  if (question.order != SumOrder::Any && sum_order(candidate.program) < question.order) {
    return question.order == SumOrder::Canonical
               ? "does not combine all contributions at once in rank order, as determinism=full asks"
               : "does not combine contributions in rank order, and the operator is not commutative";
  }
  if (question.rounds_once && candidate.roundings > 1) {
    return "rounds sums " + std::to_string(candidate.roundings) +
           " times, where rounding=once and rounding=stochastic allow one rounding";
  }
  if (is_block(question.wire) && candidate.program.wire() != question.wire)
    return "does not send sums between hosts as wire=" + std::string(name_of(question.wire)) + " asks";
  return "";
}

}  // namespace ccom
