// SPDX-License-Identifier: Apache-2.0
//
// choose(): which algorithm, for which call, on which topology, and why. Pure: every rank computes the same answer from
// the same topology, so nothing needs to be agreed at run time.
//
// Candidates are the programs whose links exist: through the memory of hosts, by messages, or both. Each is priced with
// the topology's speeds (algorithms/cost.h, node_cost.h); the cheapest one that keeps the accuracy promise wins: narrow
// floating types may be rounded once inside a host and ceil(log2 hosts) times more across hosts, where a candidate
// exists that keeps to it. Where a question asks for an order of contributions (operators that do not commute, bits
// that must not depend on the program) those alone are legal that are known to have it (algorithms/rank_order.h), and
// where it asks for one rounding, those that round once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/measured_costs.h"
#include "base/status.h"
#include "plan/online_choice.h"
#include "plan/program.h"
#include "plan/value.h"
#include "topology/topology.h"

namespace ccom {

// A program for calls of `from_bytes` to `to_bytes` (Question::bytes), both included (plan_file.h).
struct PlanEntry {
  Program program;  // with the collective, the ranks and the root that it is for
  size_t from_bytes = 0;
  size_t to_bytes = SIZE_MAX;
  friend bool operator==(const PlanEntry&, const PlanEntry&) = default;
};

// What the ranks of a communicator agree on besides the topology. Equal on all ranks.
struct Settings {
  std::string forced{};                    // the syntax of CCOM_ALGO
  std::string preferred{};                 // an algorithm to choose where it is legal and nothing is forced
  bool shared_memory = false;              // ranks of a host without an imposed fabric may use its memory as they like
  size_t scratch_bytes = size_t{2} << 20;  // that a call by messages takes at a time: stays in cache
  int most_channels = 256;                 // that two ranks may have between them
  bool has_ways = true;                    // calls through memory may take other ways than the plan's (node_ways())
  SumOrder order = SumOrder::Any;          // of reductions whose bits depend on it
  bool rounds_once = false;                // sums of narrow floats are rounded once, wherever the ranks are
  UnitType wire = UnitType::Call;          // blocks as which sums cross hosts, in calls that ask for it
  std::vector<PlanEntry> plans{};          // the user's (CCOM_PLAN): the first that serves a call is taken
};

struct Question {
  Collective collective = Collective::AllReduce;
  size_t bytes = 0;           // of the largest buffer involved: the vector, or all units together
  bool narrow_float = false;  // and reducing
  Rank root = -1;
  SumOrder order = SumOrder::Any;  // that a reduction needs at least
  bool rounds_once = false;        // and must: programs that round more often are illegal
  size_t narrow_bytes = 2;         // of an element of a narrow float; 1 only where it rounds once
  bool is_v = false;               // a v-form of allgather or reduce-scatter: units differ in length
  // Of a sum or average of float32 or bfloat16, which narrow_float tells apart: as what it crosses hosts where that
  // serves (crosses_as()).
  UnitType wire = UnitType::Call;
};

// What an expected time is made of where no fabric is imposed. Inside hosts and between them may overlap.
struct TimeParts {
  double inside_ns = 0, across_ns = 0;
  double waits_ns = 0;  // of both: messages that wait for one another, and starting them; not of barriers
};

struct Candidate {
  Program program;
  double steps = 0;    // serial messages; of one host's memory: barriers
  double bytes = 0;    // sent by a rank; of one host's memory: loaded and stored by the rank that does most
  double time_ns = 0;  // expected
  TimeParts parts = {};
  int roundings = 0;
  bool legal = true;
  std::string note;  // why it is illegal, or was passed over; of "node": the scheme, and what a rank does in it
};

struct Choice {
  std::vector<Candidate> candidates;  // cheapest first, illegal ones last
  size_t chosen = 0;
  std::string reason;
  bool is_users = false;  // from Settings::plans: nothing is known to be right about it
  const Program& program() const { return candidates[chosen].program; }
};

// Roundings of narrow floats that the accuracy promise allows.
int allowed_roundings(const Topology& topology);

// As what the sums of a question cross hosts: question.wire for allreduces of more than kMostPlainBytes between hosts
// whose ranks use their hosts' memory, or are alone there; without an imposed fabric. Else as they are. Programs that
// do otherwise are illegal.
inline constexpr size_t kMostPlainBytes = size_t{16} << 10;
UnitType crosses_as(const Topology& topology, const Settings& settings, const Question& question);

// Whether the ranks of a host use its memory instead of messages among themselves.
bool uses_memory(const Topology& topology, const Settings& settings);

// Whether programs over hosts can run: inside them through memory, if there is anything to do.
bool reaches_hosts(const Topology& topology, const Settings& settings);

// A forced name that does not exist for the collective is a ConfigError with the names there are; one that the topology
// forbids is NotSupported with the reason.
Result<Choice> choose(const Topology& topology, const Settings& settings, const Question& question);

// How the ranks of a host may run a Host stage of a program: as the stage says, if `lines` leave it at that, then in
// other ways that compute the same expressions. Each may be the fastest one on some machine; calls find out
// (plan/online_choice.h). lines: of the host.
std::vector<NodeChoice> node_ways(const Topology& topology, const Program& program, const Stage& stage,
                                  const LineCosts& lines);

// What a task with units of so many bytes costs in each of its ways on a host, by what was measured there, and with
// which it had better begin: one of those that pass lines like the first one. is_mapped: others have mapped the
// buffers, which else are ordinary memory.
ExpectedWays expected_ways(const Topology& topology, int host, const MeasuredCosts& measured, const NodeTask& task,
                           const std::vector<NodeChoice>& ways, size_t unit_bytes, bool is_mapped);

// Whether last readers on such a host had better claim the lines that they have read.
bool claims_lines(const LineCosts& lines);

// Up to how many bytes that a rank shows others its calls are small on a host: run by one function, without a look-up.
// 0 where tiny calls of many ranks need another way. is_rooted: calls in which the root alone shows something, or
// reads, so that ranks can go ahead of others; ranks that outnumber their processors gain by that in longer ones, too.
size_t small_call_bytes(const Topology& topology, int host, bool is_rooted);

// Which neighbouring calls of a group run as one: so many at least, and so many bytes of the largest buffer of them
// all. is_small: each call alone is (small_call_bytes()).
struct Fusing {
  size_t least_calls, most_bytes;
};
Fusing fusing(bool is_small);

// How many channels to each peer the programs may use that choose() may choose.
std::vector<int> channels_by_peer(const Topology& topology, const Settings& settings, Rank rank);

// How many channels between one pair of ranks the algorithms may use that choose() may choose.
int channels_needed(const Topology& topology, std::string_view forced);

// The choice as a JSON object in one line, with what link_loads.h adds if that is there.
struct Details;
// more: fields to add, each after a comma.
std::string explain_json(const Question& question, const Choice& choice, const Details* details = nullptr,
                         const std::string& more = {});

}  // namespace ccom
