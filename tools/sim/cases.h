// SPDX-License-Identifier: Apache-2.0
//
// One simulated call: its algorithm is chosen as in production, or named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/collective.h"
#include "planner/bound.h"
#include "planner/planner.h"
#include "sim/simulator.h"

namespace ccom::simtool {

struct Case {
  Collective collective = Collective::AllReduce;
  size_t bytes = 0;       // as Question::bytes
  std::string algorithm;  // "" as the planner chooses
  // Whether programs of one stage of messages run in their tiles, as in production; else as they are priced, at once.
  bool tiles_messages = false;
  SumOrder order = SumOrder::Any;  // of a reduction
  int windows = 0;                 // of staged algorithms of messages; 0: as the planner chooses
  int streams = 0;                 // that their levels use, at most; 0: all
  int noisy_runs = 20;             // beside the one without noise, where the options ask for some
  // How a program of one stage, which stays inside a host, runs there: one of its ways (node_ways()), as text. "", or
  // what is none of them: as calls begin, by what ranks have measured.
  std::string way = {};
  std::optional<MeasuredCosts> measured = {};  // nothing: the way that the planner names first
};

struct Outcome {
  Case what;
  Program program;
  bool chosen = false;     // by the planner, had nobody asked for anything
  double expected_ns = 0;  // by the planner; 0: it was not asked
  Bound bound;
  SimReport report;
  std::vector<double> noisy_ns = {};  // with noise, ascending: of the options' seed and those that follow
  bool folded = false;
  double seconds = 0;                                                                // that the simulation took
  double algbw() const { return static_cast<double>(what.bytes) / report.time_ns; }  // GB/s
  double busbw(int nranks) const { return algbw() * busbw_factor(what.collective, nranks); }
};

Question question_of(const Case& what);
// "allreduce of 1048576 bytes"
std::string text_of(const Case& what);

// As the planner chooses, or by the named algorithm, and with the way that the case asks for.
Result<Program> program_of(const Topology& topology, const Case& what, const SimOptions& options);
Result<Outcome> simulate_chosen(const Topology& topology, const Case& what, const Program& program,
                                const SimOptions& options, bool fold);

// Ranks of a host without a fabric use its memory. Simulates all hosts, or one for all if nothing is wrong with the
// machine and all hosts are alike (`fold`).
Result<Outcome> simulate_case(const Topology& topology, const Case& what, const SimOptions& options, bool fold);

// sendrecv of every rank with the next one: along links, or forwarded as by communicators.
Result<Outcome> simulate_transfers(const Topology& topology, const Case& what, SimOptions options);

// By the program of a plan file; nothing if none of its entries serves the call. It is proved first.
Result<std::optional<Outcome>> simulate_given(const Topology& topology, const Case& what,
                                              const std::vector<PlanEntry>& plans, const SimOptions& options,
                                              bool fold);

// The algorithms that the planner considers possible, cheapest first.
Result<std::vector<std::string>> legal_algorithms(const Topology& topology, const Case& what);

}  // namespace ccom::simtool
