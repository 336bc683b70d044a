// SPDX-License-Identifier: Apache-2.0
//
// What a choice is worth, beyond its price: what each wire carries, how far from the bound each candidate stays, and
// why the others lost. Counted from the plans that would run, by the lint (plan/lint.h) over the topology's wires.
#pragma once

#include <string>
#include <vector>

#include "planner/bound.h"
#include "planner/planner.h"

namespace ccom {

// Wires of one kind: "link", "port" (into memory), "uplink".
struct WireKind {
  std::string name;
  uint32_t wires = 0;
  uint32_t used = 0;
  double bytes = 0;  // over all of them
  double most = 0;   // bytes of the one that carries most
  friend bool operator==(const WireKind&, const WireKind&) = default;
};

struct LinkLoadReport {
  std::string missing = {};  // why there is none; "" if there is
  std::string note = {};     // what it leaves out
  uint64_t messages = 0;
  size_t rounds = 0;                 // of messages that wait for one another
  std::vector<WireKind> kinds = {};  // that are there
  std::string busiest = {};          // the wire that needs longest for what it carries: "host 0 link 3->7"
  double busiest_bytes = 0;
  double busiest_ns = 0;
};

// The wires' load in a call. Left out, with a reason, for more than 1024 ranks or `most_steps` steps of all ranks
// together, and for programs without messages.
LinkLoadReport link_load_report(const Topology& topology, const Question& question, const Program& program,
                                size_t most_steps);

struct Details {
  int ranks = 0;
  Bound bound = {};
  LinkLoadReport chosen = {};
  // By candidate: "chosen: ...", or why it lost, "2.1 x: 30 steps instead of 8". Of illegal ones their note.
  std::vector<std::string> why = {};
  std::vector<std::string> notes = {};  // by candidate: its own, or what its calls cost in memory
};

// `most_steps` bounds the work of counting for all candidates but the chosen one together, cheapest first; that one may
// take four times as many.
Details analyze(const Topology& topology, const Question& question, const Choice& choice, size_t most_steps);

}  // namespace ccom
