// SPDX-License-Identifier: Apache-2.0
#include "planner/link_loads.h"

#include <algorithm>

#include "algorithms/stage_plans.h"
#include "base/text.h"
#include "planner/fabric_search.h"
#include "planner/program_notes.h"
#include "planner/wire_fabric.h"

namespace ccom {
namespace {

constexpr int kMostRanks = 1024;
// The choice is worth more than its rivals.
constexpr size_t kChoiceShare = 4;

// All ranks' plans; nothing if they have more steps.
std::vector<Plan> plans_of(const Question& question, const Program& program, int nranks, size_t most_steps) {
  const auto plan_of = message_plans(program.stages[0].messages, question.collective, nranks, question.root);
  std::vector<Plan> plans;
  size_t steps = 0;
  for (Rank rank = 0; rank < nranks; ++rank) {
    plans.push_back(plan_of(rank));
    steps += plans.back().steps.size();
    // The first rank tells, so that what is too long is not made.
    if (steps > most_steps || (rank == 0 && steps * static_cast<size_t>(nranks) > 2 * most_steps)) return {};
  }
  return plans;
}

void add_kinds(LinkLoadReport& account, const Wires& wires, const LintReport& report, double bytes) {
  for (uint32_t wire = 0; wire < wires.count(); ++wire) {
    const std::string name = kind_of(wires.name(wire));
    auto kind = std::ranges::find(account.kinds, name, &WireKind::name);
    if (kind == account.kinds.end()) kind = account.kinds.insert(kind, WireKind{.name = name});
    const double load = report.link_loads[wire] * bytes;
    ++kind->wires;
    kind->used += report.link_loads[wire] > 0 ? 1 : 0;
    kind->bytes += load;
    kind->most = std::max(kind->most, load);
  }
}

LinkLoadReport counted(const Topology& topology, const Question& question, std::span<const Plan> plans) {
  const Wires wires(topology);
  const LintFabric fabric = wire_fabric(wires);
  const Result<LintReport> report = lint(plans, fabric);
  if (!report) return {.missing = report.error().message()};
  const auto bytes = static_cast<double>(question.bytes);
  LinkLoadReport account{.messages = report->messages, .rounds = report->rounds.size()};
  add_kinds(account, wires, *report, bytes);
  if (report->messages > 0) {
    account.busiest = wires.name(report->busiest_link);
    account.busiest_bytes = report->link_loads[report->busiest_link] * bytes;
    account.busiest_ns = account.busiest_bytes * fabric.weights[report->busiest_link];
  }
  return account;
}

// `most_steps` loses what was spent.
LinkLoadReport spend(const Topology& topology, const Question& question, const Program& program, size_t& most_steps) {
  if (!program.is_messages()) {
    return {.missing = program.is_node() ? "no messages: ranks use memory that they share"
                                         : "not counted where ranks use memory inside hosts"};
  }
  if (question.collective == Collective::SendReceive) return {.missing = "not counted: one message, of any two ranks"};
  if (topology.nranks() > kMostRanks) return {.missing = printed("not counted for more than %d ranks", kMostRanks)};
  const std::vector<Plan> plans = plans_of(question, program, topology.nranks(), most_steps);
  if (plans.empty()) return {.missing = "not counted: the plans of all ranks together are too long"};
  for (const Plan& plan : plans) most_steps -= plan.steps.size();
  return counted(topology, question, plans);
}

// Without windows and chunks, which change neither loads nor paths.
Program in_one_piece(Program program) {
  set_count(program.stages[0].messages, 1);
  return program;
}

// What is compared of two candidates.
struct Side {
  const Candidate& candidate;
  const LinkLoadReport* account;
};

// Without a fabric: inside hosts or between them, and whether messages wait or move there.
std::string lost_part(const Candidate& a, const Candidate& b) {
  const double inside_ns = a.parts.inside_ns - b.parts.inside_ns;
  const double across_ns = a.parts.across_ns - b.parts.across_ns;
  if (across_ns >= inside_ns)
    return printed("%.1f us between hosts, the choice %.1f", a.parts.across_ns / 1e3, b.parts.across_ns / 1e3);
  if (b.parts.across_ns > 0)
    return printed("%.1f us inside hosts, the choice %.1f", a.parts.inside_ns / 1e3, b.parts.inside_ns / 1e3);
  return printed("%.1f us to start and await messages, %.1f to copy and sum", a.parts.waits_ns / 1e3,
                 (a.time_ns - a.parts.waits_ns) / 1e3);
}

// What the time above the winner's is spent on: more bytes on some wire, or more steps, none of which takes longer than
// the longest way.
std::string loss(const Side& loser, const Side& winner, double longest_way_ns) {
  constexpr double kClearly = 1.05;
  const Candidate& a = loser.candidate;
  const Candidate& b = winner.candidate;
  const double excess_ns = a.time_ns - b.time_ns;
  if (loser.account != nullptr && winner.account != nullptr) {
    const LinkLoadReport& mine = *loser.account;
    const LinkLoadReport& theirs = *winner.account;
    if (2 * (mine.busiest_ns - theirs.busiest_ns) > excess_ns) {
      const std::string kind = kind_of(mine.busiest);
      const auto used = std::ranges::find(mine.kinds, kind, &WireKind::name);
      const auto used_before = std::ranges::find(theirs.kinds, kind, &WireKind::name);
      if (used->used < used_before->used && used->bytes < kClearly * used_before->bytes) {
        return printed("uses %u of %u %ss, the choice %u", used->used, used->wires, kind.c_str(), used_before->used);
      }
      return printed("%s is busy for %.1f us, the busiest of the choice for %.1f", mine.busiest.c_str(),
                     mine.busiest_ns / 1e3, theirs.busiest_ns / 1e3);
    }
  }
  if (a.parts.inside_ns + a.parts.across_ns > 0) return lost_part(a, b);
  if ((a.steps - b.steps) * longest_way_ns >= excess_ns) return printed("%.0f steps instead of %.0f", a.steps, b.steps);
  if (a.bytes > kClearly * b.bytes) return printed("a rank sends %.1f x the bytes", a.bytes / std::max(b.bytes, 1.0));
  return "its messages take turns on wires, or overlap less";
}

std::string why_lost(const Side& loser, const Side& winner, const Bound& bound) {
  const Candidate& a = loser.candidate;
  const Candidate& b = winner.candidate;
  if (a.time_ns < b.time_ns && !a.note.empty()) return "passed over: " + a.note;
  if (a.time_ns < b.time_ns) return "passed over, though expected to be faster";
  const double ratio = a.time_ns / std::max(b.time_ns, 1e-3);
  if (ratio < 1.005) return "as fast as the choice";
  return printed(ratio < 1.095 ? "%.2f x: " : "%.1f x: ", ratio) + loss(loser, winner, bound.latency_ns);
}

std::string why_chosen(const Candidate& candidate, const Bound& bound, const std::string& reason) {
  const char* what = candidate.program.is_node() ? "barrier" : "step";
  std::string why = reason + ": " + printed("%.0f %s%s", candidate.steps, what, candidate.steps == 1 ? "" : "s");
  if (bound.time_ns() > 0) why += printed(", %.2f x the bound", candidate.time_ns / bound.time_ns());
  return why;
}

}  // namespace

LinkLoadReport link_load_report(const Topology& topology, const Question& question, const Program& program,
                                size_t most_steps) {
  size_t left = most_steps;
  LinkLoadReport account = spend(topology, question, program, left);
  if (!program.is_messages()) return account;
  const Program whole = in_one_piece(program);
  if (account.missing.empty() || whole == program) return account;
  left = most_steps;
  account = spend(topology, question, whole, left);
  if (account.missing.empty()) account.note = "counted without windows and chunks: with them the plans are too long";
  return account;
}

Details analyze(const Topology& topology, const Question& question, const Choice& choice, size_t most_steps) {
  const Candidate& winner = choice.candidates[choice.chosen];
  const bool uses_memory =
      std::ranges::any_of(choice.candidates, [](const Candidate& c) { return c.legal && !c.program.is_messages(); });
  Details details{.ranks = topology.nranks(),
                  .bound = lower_bound(topology, question, uses_memory),
                  .chosen = link_load_report(topology, question, winner.program, kChoiceShare * most_steps)};
  const LinkLoadReport* const best = details.chosen.missing.empty() ? &details.chosen : nullptr;
  for (const Candidate& candidate : choice.candidates) {
    const bool is_silent = candidate.note.empty() && candidate.legal && candidate.program.is_node();
    details.notes.push_back(is_silent ? node_note(topology, question, candidate.program) : candidate.note);
    if (&candidate == &winner) {
      details.why.push_back(why_chosen(winner, details.bound, choice.reason));
    } else if (!candidate.legal) {
      details.why.push_back(candidate.note);
    } else {
      const LinkLoadReport account = best != nullptr
                                         ? spend(topology, question, in_one_piece(candidate.program), most_steps)
                                         : LinkLoadReport{"-"};
      details.why.push_back(
          why_lost({candidate, account.missing.empty() ? &account : nullptr}, {winner, best}, details.bound));
    }
  }
  return details;
}

}  // namespace ccom
