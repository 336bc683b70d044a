// SPDX-License-Identifier: Apache-2.0
//
// choose(): which algorithm, for which call, on which topology, and why. Pure: every rank computes the same answer from
// the same topology, so nothing needs to be agreed at run time.
//
// Candidates are the algorithms whose links exist. Each is priced by its closed form (algorithms/cost.h) with the
// topology's speeds; shared memory without messages beats them all, else the cheapest one that keeps the accuracy
// promise wins: narrow floating types may be rounded once inside a host and ceil(log2 hosts) times more across hosts,
// where a candidate exists that keeps to it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/collectives.h"
#include "base/status.h"
#include "plan/plan.h"
#include "topology/topology.h"

namespace ccom {

struct Question {
  Collective collective = Collective::AllReduce;
  size_t bytes = 0;           // of the largest buffer involved: the vector, or all units together
  bool narrow_float = false;  // and reducing
  Rank root = -1;
  bool shares_memory = false;  // all ranks share one host's memory and may use it as they like
  bool meets_inside = false;   // there are several hosts, and this holds for the ranks of each
  int most_channels = 256;     // that two ranks may have between them
};

// All that is needed to make any rank's plan. A value.
struct Recipe {
  // Node: no messages; plans of algorithms/node.h, whose scheme follows from the size and from what can be reached.
  // Hosts: node plans inside, messages across (comm/hierarchy.h).
  enum class Kind { Staged, Tree, Trees, Radix, Pairwise, Routed, Node, Hosts };
  std::string algorithm;
  Kind kind = Kind::Staged;
  Staged staged{};
  Tree tree{};
  std::vector<Tree> trees{};
  Radix radix{};
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

struct Candidate {
  Recipe recipe;
  double steps = 0;    // serial messages
  double bytes = 0;    // sent by a rank
  double time_ns = 0;  // expected
  int roundings = 0;
  bool legal = true;
  std::string note;  // why it is illegal, or was passed over; of "node": the scheme, and what a rank does in it
};

struct Choice {
  std::vector<Candidate> candidates;  // cheapest first, illegal ones last
  size_t chosen = 0;
  std::string reason;
  const Recipe& recipe() const { return candidates[chosen].recipe; }
};

// `forced`: the syntax of CCOM_ALGO. A forced name that does not exist for the collective is a ConfigError with the
// names there are; one that the topology forbids is NotSupported with the reason.
Result<Choice> choose(const Topology& topology, const Question& question, std::string_view forced);

// Not for Kind::Node and Kind::Hosts.
Plan make_plan(const Recipe& recipe, const Call& call);

// The same for all ranks of one call out of place; what they share is worked out once. `recipe` outlives the function.
std::function<Plan(Rank)> plan_maker(const Recipe& recipe, Collective collective, int nranks, Rank root);

// Calls whose plan keeps much in scratch run in tiles, one element range of every unit after another. The most elements
// of a unit that a tile may have so that scratch stays below `scratch_bytes` on the rank that needs most; SIZE_MAX: no
// tiles. The same on every rank.
size_t tile_elements(const Recipe& recipe, Collective collective, int nranks, size_t element_bytes,
                     size_t scratch_bytes);

// How many channels between one pair of ranks the algorithms may use that choose() may choose.
int channels_needed(const Topology& topology, std::string_view forced);

// The choice as a JSON object in one line, with what account.h adds if that is there; or as a table for people.
struct Details;
std::string explain_json(const Question& question, const Choice& choice, const Details* details = nullptr);
std::string explain_text(const Question& question, const Choice& choice);

}  // namespace ccom
